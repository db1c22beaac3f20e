//! How a claim finds what it takes. A plan that sorts or reads whole tables grows with the backlog.

use rusqlite::Connection;

use crate::SqliteEvents;
use crate::events::claim::{STATEMENTS, page};
use crate::events::store::LOOKS;

#[test]
fn a_claim_reads_no_more_than_it_looks_at() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop.db");
    drop(SqliteEvents::open(&path).unwrap());
    let file = Connection::open(&path).unwrap();
    let expected: [&[&str]; 5] = [
        &["SCAN mamparo_events USING INDEX mamparo_events_waiting"],
        &[
            "SEARCH e USING INDEX mamparo_events_waiting (number<?)",
            "CORRELATED SCALAR SUBQUERY 1",
            "SEARCH b USING COVERING INDEX mamparo_events_key (key=? AND rowid<?)",
        ],
        &["SEARCH mamparo_events USING INDEX mamparo_events_keyless (number>?)"],
        &["SEARCH mamparo_events USING INDEX mamparo_events_key (key>?)"],
        &["SEARCH mamparo_events USING INDEX mamparo_events_key (key=? AND rowid>?)"],
    ];
    for (sql, expected) in STATEMENTS.iter().zip(expected) {
        assert_eq!(steps(&file, sql), *expected, "{sql}");
    }
}

fn steps(file: &Connection, sql: &str) -> Vec<String> {
    let mut asked = file.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    let steps = asked.raw_query().mapped(|row| row.get::<_, String>(3));
    steps.map(Result::unwrap).collect()
}

/// The backlog is looked at every five seconds, however many wait, and what is parked is listed beside them.
#[test]
fn a_look_goes_along_the_index_of_what_it_is_about() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop.db");
    drop(SqliteEvents::open(&path).unwrap());
    let file = Connection::open(&path).unwrap();
    let asked = LOOKS.map(str::to_owned).into_iter().chain([page()]);
    for (sql, index) in asked.zip(["waiting", "parked", "waiting", "parked"]) {
        let steps = steps(&file, &sql);
        let along = format!("INDEX mamparo_events_{index}");
        let reads = steps.iter().filter(|it| it.contains("mamparo_events"));
        let reads: Vec<_> = reads.collect();
        assert!(reads.len() == 1 && reads[0].contains(&along), "{steps:?}");
        assert!(!steps.iter().any(|it| it.contains("B-TREE")), "{steps:?}");
    }
}
