//! The scenes as tables.

use comfy_table::{CellAlignment, Table, presets};

use super::breaker::Outage;
use super::bulkhead::Starved;
use super::hedge::Tail;
use super::partial::Pages;
use super::run::Protection;

/// Draws a table for each scene, with its title.
pub(in crate::demo) fn tables(found: &Protection) -> [(&'static str, Vec<String>); 4] {
    [
        (
            "A breaker. The dependency goes down after a while, and comes back when it has opened twice:",
            breaker(&found.breaker),
        ),
        (
            "A bulkhead. A gateway has few workers, and one of its two dependencies is slow. The callers of the other one:",
            bulkhead(&found.bulkhead),
        ),
        (
            "A hedge. One request in twenty is late, and is sent again beside the first:",
            hedge(&found.hedge),
        ),
        (
            "A fallback. For one page in three there are no recommendations:",
            fallback(&found.fallback),
        ),
    ]
}

fn breaker(outage: &Outage) -> Vec<String> {
    let rows = outage.bands.iter().map(|band| {
        [
            band.state.replace('_', "-"),
            format!("{:.0} ms", band.from_ms),
            format!("{:.0} ms", band.until_ms - band.from_ms),
            band.offered.to_string(),
            band.admitted.to_string(),
            (band.offered - band.admitted).to_string(),
            band.failed.to_string(),
        ]
    });
    let head = [
        "state", "from", "for", "offered", "admitted", "rejected", "failed",
    ];
    drawn(head, rows)
}

fn bulkhead(rows: &[Starved]) -> Vec<String> {
    let rows = rows.iter().map(|row| {
        [
            if row.bulkhead {
                "with a bulkhead"
            } else {
                "without"
            }
            .to_owned(),
            row.healthy.to_string(),
            row.answered.to_string(),
            format!("{:.0} ms", row.p50_ms),
            format!("{:.0} ms", row.p99_ms),
        ]
    });
    drawn(["", "requests", "answered", "p50", "p99"], rows)
}

fn hedge(rows: &[Tail]) -> Vec<String> {
    let rows = rows.iter().map(|row| {
        [
            if row.hedge { "with a hedge" } else { "without" }.to_owned(),
            row.requests.to_string(),
            row.sent.to_string(),
            format!("{:.0} ms", row.p50_ms),
            format!("{:.0} ms", row.p99_ms),
        ]
    });
    drawn(["", "requests", "sent", "p50", "p99"], rows)
}

fn fallback(pages: &Pages) -> Vec<String> {
    let row = [
        "pages".to_owned(),
        pages.pages.to_string(),
        pages.answered.to_string(),
        pages.partial.to_string(),
    ];
    drawn(["", "requests", "answered", "partial"], [row])
}

fn drawn<const N: usize>(
    head: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> Vec<String> {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(head);
    for row in rows {
        table.add_row(row);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.lines().collect()
}
