//! How a claim finds what it takes. A plan that sorts or reads whole tables grows with the backlog.

use rusqlite::Connection;

use crate::SqliteEvents;
use crate::events::claim::STATEMENTS;
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

/// It is looked at every five seconds, however many wait.
#[test]
fn a_look_at_the_backlog_goes_along_an_index_that_has_what_it_counts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop.db");
    drop(SqliteEvents::open(&path).unwrap());
    let file = Connection::open(&path).unwrap();
    for (sql, index) in LOOKS.iter().zip(["waiting", "parked", "waiting"]) {
        let steps = steps(&file, sql);
        let along = format!("INDEX mamparo_events_{index}");
        let reads = steps.iter().filter(|it| it.contains("mamparo_events"));
        let reads: Vec<_> = reads.collect();
        assert!(reads.len() == 1 && reads[0].contains(&along), "{steps:?}");
        assert!(!steps.iter().any(|it| it.contains("B-TREE")), "{steps:?}");
    }
}
