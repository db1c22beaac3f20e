//! How SQLite finds what it is asked for. A plan that reads a whole table grows with history.

use rusqlite::Connection;

use super::support::Disk;
use crate::durable::{forget, letters, message, postpone, queries, row};

const BY_ID: &str = "SEARCH mamparo_durable USING INDEX mamparo_durable_id (id=?)";
const REQUEST: &str = "SEARCH mamparo_durable_request USING INTEGER PRIMARY KEY (rowid=?)";
const EVENT: &str = "SEARCH mamparo_durable_event USING PRIMARY KEY (of=?)";
const SCHEDULE: &str = "SEARCH mamparo_durable_message USING INDEX mamparo_durable_schedule (id=? AND attempt=? AND seq=?)";
const READY: &str =
    "SEARCH mamparo_durable_message USING INDEX mamparo_durable_ready (queue=? AND ready_at<?)";
const QUEUE: &str =
    "SEARCH mamparo_durable_message USING COVERING INDEX mamparo_durable_ready (queue=?)";
const NUMBER: &str = "SEARCH mamparo_durable_message USING INTEGER PRIMARY KEY (rowid=?)";
const DEAD: &str =
    "SEARCH mamparo_durable_dead USING INDEX mamparo_durable_dead_letter (queue=? AND number>?)";
const IN_STATE: &str = "SEARCH mamparo_durable USING INDEX mamparo_durable_live (state=?)";
const WATCHED: &str =
    "SEARCH mamparo_durable USING INDEX mamparo_durable_live (state=? AND watched_from<?)";
const WATCHED_WITHIN: &str = "SEARCH mamparo_durable USING INDEX mamparo_durable_live (state=? AND watched_from>? AND watched_from<?)";
const ONLY_WATCHED: &str =
    "SEARCH mamparo_durable USING COVERING INDEX mamparo_durable_live (state=? AND watched_from<?)";

/// Each step of a plan, as SQLite says it.
fn plan(file: &Connection, sql: &str) -> Vec<String> {
    let mut asked = file.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    let mut rows = asked.raw_query();
    let mut steps = Vec::new();
    while let Some(row) = rows.next().unwrap() {
        steps.push(row.get(3).unwrap());
    }
    steps
}

fn assert_plans(cases: &[(&str, &[&str])]) {
    let disk = Disk::new();
    drop(disk.open());
    let file = disk.raw();
    for (sql, expected) in cases {
        assert_eq!(plan(&file, sql), *expected, "{sql}");
    }
}

#[test]
fn a_step_finds_each_row_that_it_touches_by_an_index() {
    assert_plans(&[
        (row::FIND, &[BY_ID]),
        (row::MOVE_ON, &[BY_ID]),
        (row::END, &[BY_ID]),
        (row::ADD_EVENT, &[EVENT]),
        (message::SCHEDULED, &[SCHEDULE]),
        (message::UNSCHEDULE, &[SCHEDULE]),
        (message::RESCHEDULE, &[SCHEDULE]),
    ]);
}

#[test]
fn a_queue_reads_what_it_delivers_and_no_more() {
    assert_plans(&[
        (letters::READY, &[READY]),
        (letters::TAKE, &[NUMBER]),
        (letters::NEXT, &[QUEUE]),
        (letters::DEPTH, &[QUEUE]),
        (letters::DEAD, &[DEAD]),
        (message::REQUEST, &[BY_ID, REQUEST]),
    ]);
}

#[test]
fn what_is_asked_of_transactions_reads_no_history() {
    let number = "SEARCH mamparo_durable USING COVERING INDEX mamparo_durable_id (id=?)";
    let from_id = "SEARCH mamparo_durable USING INDEX mamparo_durable_id (id>?)";
    let oldest = "SEARCH mamparo_durable USING COVERING INDEX mamparo_durable_born";
    assert_plans(&[
        (queries::BODY, &[number, REQUEST]),
        (queries::HISTORY, &[EVENT]),
        (queries::STUCK, &[WATCHED]),
        (queries::LIST, &[from_id]),
        (
            queries::LIST_FEW,
            &[IN_STATE, "USE TEMP B-TREE FOR ORDER BY"],
        ),
        (queries::OLDEST, &[oldest]),
        (queries::OVERDUE, &[ONLY_WATCHED]),
        (queries::OVERDUE_WITHIN, &[WATCHED_WITHIN]),
        (queries::OVERDUE_SCHEDULING, &[IN_STATE]),
        (postpone::DUE, &[WATCHED]),
    ]);
    let ended = "SEARCH mamparo_durable USING INDEX mamparo_durable_over (updated_at<?)";
    let one = "SEARCH mamparo_durable USING INTEGER PRIMARY KEY (rowid=?)";
    let [event, request, transaction] = forget::FORGET;
    assert_plans(&[
        (forget::OVER, &[ended]),
        (event, &[EVENT]),
        (request, &[REQUEST]),
        (transaction, &[one]),
    ]);
    let disk = Disk::new();
    drop(disk.open());
    let counts = plan(&disk.raw(), queries::COUNTS);
    let scans: Vec<_> = counts
        .iter()
        .filter(|step| step.starts_with("SCAN"))
        .collect();
    let live = "SCAN mamparo_durable USING COVERING INDEX mamparo_durable_live";
    assert_eq!(scans, [live, "SCAN mamparo_durable_ended"]);
}
