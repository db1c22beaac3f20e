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
pub(crate) struct Table {
    rows: Vec<Row>,
    fault: String,
}

impl Table {
    /// The rows that follow are of this fault.
    pub(super) fn begin(&mut self, fault: Fault) {
        self.fault = fault.name();
    }

    pub(super) fn customers(&mut self, expected: impl Display, seen: impl Display, holds: bool) {
        self.row("customers", expected, seen, holds);
    }

    pub(super) fn operators(&mut self, expected: impl Display, seen: impl Display, holds: bool) {
        self.row("operators", expected, seen, holds);
    }

    /// Whoever looks at the spans.
    pub(super) fn traces(&mut self, expected: impl Display, seen: impl Display, holds: bool) {
        self.row("traces", expected, seen, holds);
    }

    /// Whoever counts the money.
    pub(super) fn ledger(&mut self, expected: impl Display, seen: impl Display, holds: bool) {
        self.row("ledger", expected, seen, holds);
    }

    /// Adds a row; tells it at once, since a day is long.
    #[expect(clippy::print_stderr, reason = "the table comes at the end only")]
    pub(super) fn row(
        &mut self,
        who: &'static str,
        expected: impl Display,
        seen: impl Display,
        holds: bool,
    ) {
        let row = Row {
            fault: self.fault.clone(),
            who,
            expected: expected.to_string(),
            seen: seen.to_string(),
            holds,
        };
        let mark = if holds { "✓" } else { "✗" };
        eprintln!("{mark} {}, {}: {}", row.fault, row.who, row.seen);
        self.rows.push(row);
    }

    pub(super) fn differences(&self) -> usize {
        self.rows.iter().filter(|row| !row.holds).count()
    }

    pub(super) fn json(&self) -> String {
        serde_json::to_string_pretty(&self.rows).unwrap_or_default()
    }
}

/// As Markdown writes tables.
impl Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "| fault | who | expected | seen | |\n|---|---|---|---|---|"
        )?;
        for row in &self.rows {
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
