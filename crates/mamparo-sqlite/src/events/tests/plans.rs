//! How a claim finds what it takes. A plan that sorts or reads whole tables grows with the backlog.

use rusqlite::Connection;

use crate::SqliteEvents;
use crate::events::claim::STATEMENTS;

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
        let mut asked = file.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let steps = asked.raw_query().mapped(|row| row.get::<_, String>(3));
        let steps: Vec<String> = steps.map(Result::unwrap).collect();
        assert_eq!(steps, *expected, "{sql}");
    }
}
