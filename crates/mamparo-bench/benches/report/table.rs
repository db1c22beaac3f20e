//! The table.

use std::collections::HashMap;

use comfy_table::{CellAlignment, Table as Grid, presets::ASCII_MARKDOWN};
use mamparo_core::BoxError;

use super::allocated::{self, Allocated};
use super::callgrind;
use super::timing::{Timed, Turn, median};
use crate::cases::{Case, Group};

/// The first case of a group shows its own figures, the others what they add to it.
const COLUMNS: [&str; 9] = [
    "case",
    "instructions",
    "allocations",
    "ns",
    "× its time",
    "× its rate",
    "× its p99",
    "future, bytes",
    "in flight, bytes",
];

/// One table of all that was measured; each group has the first of its cases as the measure of the others.
pub(crate) struct Table {
    grid: Grid,
    allocated: HashMap<String, Allocated>,
    notes: Vec<&'static str>,
}

/// What is exact of a case.
#[derive(Clone, Copy)]
struct Exact {
    instructions: Option<f64>,
    allocated: Option<Allocated>,
}

impl Table {
    pub(crate) fn new() -> Self {
        Self {
            grid: grid(&COLUMNS),
            allocated: allocated::read(),
            notes: Vec::new(),
        }
    }

    /// Adds the cases of a group that were timed.
    pub(crate) fn add(&mut self, group: &Group, timed: &Timed) -> Result<(), BoxError> {
        if timed.iter().all(Vec::is_empty) {
            return Ok(());
        }
        self.grid.add_row([format!("**{}**", group.name)]);
        let first = self.exact(&group.cases[0])?;
        for (index, case) in group.cases.iter().enumerate() {
            let turns = &timed[index];
            let row = match index {
                _ if turns.is_empty() => continue,
                0 => alone(case, first, turns),
                _ => beside(case, self.exact(case)?, first, turns),
            };
            self.grid.add_row(row);
        }
        Ok(())
    }

    fn exact(&mut self, case: &Case) -> Result<Exact, BoxError> {
        let instructions = callgrind::instructions(case.name)?;
        if instructions.is_none() {
            self.note("No instructions: valgrind is not installed.");
        }
        if self.allocated.is_empty() {
            self.note(
                "No allocations: run all of `cargo bench -p mamparo-bench`, not `speed` alone.",
            );
        }
        Ok(Exact {
            instructions,
            allocated: self.allocated.get(case.name).copied(),
        })
    }

    fn note(&mut self, note: &'static str) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    #[expect(
        clippy::print_stdout,
        reason = "the table is what the benchmark is run for"
    )]
    pub(crate) fn print(&self, also: Option<&Grid>) {
        for table in [Some(&self.grid), also].into_iter().flatten() {
            println!("\n{table}\n");
        }
        println!("{}", self.notes.join("\n"));
    }
}

/// An empty table; figures stand at the right.
pub(crate) fn grid(columns: &[&str]) -> Grid {
    let mut grid = Grid::new();
    grid.load_style(ASCII_MARKDOWN).set_header(columns);
    for column in grid.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    grid
}

/// The first of a group: its own figures.
fn alone(case: &Case, exact: Exact, turns: &[Turn]) -> Vec<String> {
    let ns = median(turns.iter().map(|turn| turn.case.cpu));
    vec![
        case.name.to_owned(),
        figure(exact.instructions, |count| format!("{count:.0}")),
        figure(exact.allocated, |heap| heap.allocations.to_string()),
        format!("{ns:.0}"),
        "1".to_owned(),
        "1".to_owned(),
        figure(turns[0].case.p99, |_| "1".to_owned()),
        case.future.to_string(),
        figure(exact.allocated, |heap| heap.in_flight.to_string()),
    ]
}

/// Another: what it adds to the first.
fn beside(case: &Case, exact: Exact, first: Exact, turns: &[Turn]) -> Vec<String> {
    let instructions = exact.instructions.zip(first.instructions);
    let allocated = exact.allocated.zip(first.allocated);
    let ns = median(turns.iter().map(|turn| turn.case.cpu - turn.first.cpu));
    let time = median(turns.iter().map(|turn| turn.case.cpu / turn.first.cpu));
    let rate = median(turns.iter().map(|turn| turn.first.wall / turn.case.wall));
    vec![
        case.name.to_owned(),
        figure(instructions, |(case, first)| {
            format!("{:+.0}", case - first)
        }),
        figure(allocated, |(case, first)| {
            format!("{:+}", case.allocations - first.allocations)
        }),
        format!("{ns:+.0}"),
        format!("{time:.3}"),
        format!("{rate:.3}"),
        p99(turns),
        case.future.to_string(),
        figure(exact.allocated, |heap| heap.in_flight.to_string()),
    ]
}

fn p99(turns: &[Turn]) -> String {
    let ratio = |turn: &Turn| Some(turn.case.p99? / turn.first.p99?);
    let ratios: Vec<f64> = turns.iter().filter_map(ratio).collect();
    figure((!ratios.is_empty()).then_some(ratios), |ratios| {
        format!("{:.3}", median(ratios.into_iter()))
    })
}

fn figure<T>(value: Option<T>, show: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| "–".to_owned(), show)
}
