//! What only a file has.

use mamparo_durable::backend::Trouble;
use mamparo_durable::events::{Event, EventStore as _};
use rusqlite::{Connection, TransactionBehavior};
use std::time::Duration;

use crate::{SqliteDurable, SqliteEvents};

fn event(id: &str) -> Event {
    Event::builder(id).key("a").build().unwrap()
}

#[tokio::test]
async fn an_engines_file_holds_events_too_and_keeps_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("engine.db");
    drop(SqliteDurable::open(&path).unwrap());
    let events = SqliteEvents::open(&path).unwrap();
    assert_eq!(events.backlog().await.unwrap().waiting, 0);
    drop(SqliteDurable::open(&path).unwrap());

    let newer = "UPDATE mamparo_schema SET version = 99 WHERE part = 'mamparo_events'";
    Connection::open(&path).unwrap().execute(newer, []).unwrap();
    let error = SqliteEvents::open(&path).unwrap_err();
    assert_eq!(error.trouble(), Trouble::Incompatible);
    assert!(error.to_string().contains("engine.db"), "{error}");
}

#[tokio::test]
async fn a_connection_of_the_services_own_puts_in_its_transaction_and_not_outside_of_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop.db");
    let events = SqliteEvents::open(&path).unwrap();
    let mut own = Connection::open(&path).unwrap();
    let error = events.put(&own, &event("outside")).unwrap_err();
    assert!(error.to_string().contains("begin one first"), "{error}");
    assert!(events.processed_once(&own, "stock", "m").is_err());
    let tx = own
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .unwrap();
    events.put(&tx, &event("inside")).unwrap();
    tx.commit().unwrap();
    assert_eq!(events.backlog().await.unwrap().waiting, 1);
}

/// Also where no process lives for many messages.
#[tokio::test]
async fn the_first_message_of_a_process_sweeps_the_inbox() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop.db");
    for number in 0..3 {
        let events = SqliteEvents::builder(&path).keep_inbox(Duration::ZERO);
        let events = events.open().unwrap();
        let inbox = events.clone();
        let processed = events.transaction(move |tx| {
            let id = format!("m{number}");
            inbox.processed_once(tx, "stock", &id).map(drop)
        });
        processed.await.unwrap();
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let file = Connection::open(&path).unwrap();
    let kept: Vec<String> = file
        .prepare("SELECT id FROM mamparo_inbox")
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(kept, ["m2"]);
}

#[test]
fn who_opens_what_exists_makes_no_file_and_no_table() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop.db");
    let open = || SqliteEvents::builder(&path).existing().open();
    assert_eq!(open().unwrap_err().trouble(), Trouble::Incompatible);
    assert!(!path.exists());
    drop(SqliteDurable::open(&path).unwrap());
    let error = open().unwrap_err();
    assert!(error.to_string().contains("no events in it"), "{error}");
    let tables = "SELECT count(*) FROM sqlite_schema WHERE name = 'mamparo_events'";
    let file = Connection::open(&path).unwrap();
    let tables: u32 = file.query_row(tables, [], |row| row.get(0)).unwrap();
    assert_eq!(tables, 0);
    drop(SqliteEvents::open(&path).unwrap());
    assert!(open().is_ok());
}
