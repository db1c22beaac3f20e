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

#[tokio::test]
async fn a_row_that_makes_no_sense_is_told_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop.db");
    let events = SqliteEvents::open(&path).unwrap();
    let outbox = events.clone();
    let put = events.transaction(move |tx| {
        outbox.put(tx, &event("broken"))?;
        outbox.put(tx, &Event::builder("sound").build().unwrap())
    });
    put.await.unwrap();
    let broken = "UPDATE mamparo_events SET head = 'torn' WHERE id = 'broken'";
    Connection::open(&path)
        .unwrap()
        .execute(broken, [])
        .unwrap();
    let claimed = events
        .claim(10, Duration::from_secs(9))
        .await
        .unwrap()
        .events;
    let why = claimed[0].event.as_ref().unwrap_err().as_str();
    assert!(why.starts_with("it can't be read: head = "), "{why}");
    assert_eq!(
        claimed[0].key.as_deref(),
        Some("a"),
        "its key waits behind it"
    );
    assert!(claimed[1].event.is_ok());
}
