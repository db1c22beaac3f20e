//! A row of figures for each dependency, from the metrics.

use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;

use crate::telemetry::Figures;

/// The dependencies, in the order of the table.
const DEPENDENCIES: [&str; 12] = [
    "shop",
    "catalog",
    "reviews",
    "psp",
    "mailer",
    "pricing",
    "inventory",
    "gateway",
    "reports",
    "prices",
    "search",
    "recommendations",
];

/// What the metrics say of one dependency.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    dependency: &'static str,
    operations: u64,
    attempts: u64,
    amplification: Option<f64>,
    resent: u64,
    recovered: u64,
    recovery: Option<f64>,
    refused_resends: u64,
    rejections: u64,
    budget_used: Option<f64>,
}

pub(super) fn rows(figures: &Figures) -> Vec<Row> {
    let row = |dependency| {
        let count = |metric| figures.count(metric, dependency);
        let (operations, attempts) = (count("mamparo.operations"), count("mamparo.attempts"));
        let resent = count("mamparo.resent_operations");
        let recovered = count("mamparo.recovered_operations");
        Row {
            dependency,
            operations,
            attempts,
            amplification: ratio(attempts, operations),
            resent,
            recovered,
            recovery: ratio(recovered, resent),
            refused_resends: count("mamparo.refused_resends"),
            rejections: count("mamparo.rejections"),
            budget_used: ratio(
                count("mamparo.budget.consumed"),
                count("mamparo.budget.allowed"),
            ),
        }
    };
    DEPENDENCIES.into_iter().map(row).collect()
}

/// Returns how many handlers of the shop worked on after their deadline: a server's work is for no dependency.
pub(super) fn late(figures: &Figures) -> u64 {
    figures.count("mamparo.late_work.duration", "")
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| (part as f64 / whole as f64 * 1e3).round() / 1e3)
}

/// Draws the rows as a table.
pub(super) fn table(rows: &[Row]) -> Vec<String> {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header([
        "dependency",
        "operations",
        "attempts",
        "amplification",
        "resent",
        "recovered",
        "not resent",
        "cut or refused",
        "budget used",
    ]);
    for row in rows {
        let share =
            |ratio: Option<f64>| ratio.map_or("–".to_owned(), |r| format!("{:.0} %", r * 100.0));
        table.add_row([
            row.dependency.to_owned(),
            row.operations.to_string(),
            row.attempts.to_string(),
            row.amplification
                .map_or("–".to_owned(), |ratio| format!("{ratio:.2}")),
            row.resent.to_string(),
            format!("{} ({})", row.recovered, share(row.recovery)),
            row.refused_resends.to_string(),
            row.rejections.to_string(),
            share(row.budget_used),
        ]);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.lines().collect()
}
