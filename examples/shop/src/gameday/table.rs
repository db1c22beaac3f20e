//! What was expected, and what was seen.

use std::fmt::{self, Display};

use serde::Serialize;

use super::faults::Fault;

#[derive(Serialize)]
struct Row {
    fault: String,
    who: &'static str,
    expected: String,
    seen: String,
    holds: bool,
}

/// One row for each thing that somebody should see.
#[derive(Default)]
pub(crate) struct Table(Vec<Row>);

impl Table {
    /// Adds one; tells it at once, since a day is long.
    #[expect(clippy::print_stderr, reason = "the table comes at the end only")]
    pub(super) fn row(
        &mut self,
        fault: Fault,
        who: &'static str,
        expected: impl Display,
        seen: impl Display,
        holds: bool,
    ) {
        let row = Row {
            fault: fault.name(),
            who,
            expected: expected.to_string(),
            seen: seen.to_string(),
            holds,
        };
        let mark = if holds { "as expected" } else { "OTHERWISE" };
        eprintln!("{}: {} see {}: {mark}", row.fault, row.who, row.seen);
        self.0.push(row);
    }

    pub(super) fn differences(&self) -> usize {
        self.0.iter().filter(|row| !row.holds).count()
    }

    pub(super) fn json(&self) -> String {
        serde_json::to_string_pretty(&self.0).unwrap_or_default()
    }
}

/// As Markdown writes tables.
impl Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "| fault | who | expected | seen | |\n|---|---|---|---|---|"
        )?;
        for row in &self.0 {
            let mark = if row.holds { "✓" } else { "✗" };
            let Row {
                fault,
                who,
                expected,
                seen,
                ..
            } = row;
            writeln!(f, "| {fault} | {who} | {expected} | {seen} | {mark} |")?;
        }
        Ok(())
    }
}
