//! What only a server has.

use std::sync::Arc;
use std::time::Duration;

use mamparo_core::BoxError;
use mamparo_durable::backend::Trouble;
use mamparo_durable::conformance::events::EventBackend as _;
use mamparo_durable::events::{Event, EventStore as _};
use sqlx::query;

use super::support::Service;

fn event(id: &str) -> Event {
    Event::builder(id).key("a").build().unwrap()
}

/// The relay's connections are its own.
#[tokio::test]
async fn a_pool_that_is_used_up_by_requests_stops_no_relay() {
    let service = Service::fresh().await;
    service.put(vec![event("a")], true).await;
    let mut taken = Vec::new();
    while taken.len() < 6 {
        taken.push(service.pool.acquire().await.unwrap());
    }
    let claimed = service
        .events
        .claim(10, Duration::from_secs(9))
        .await
        .unwrap();
    assert_eq!(claimed.events.len(), 1);
}

#[tokio::test]
async fn a_deadlock_is_tried_again_inside_of_the_watchdogs_transaction() {
    let service = Service::fresh().await;
    service.begin(vec!["a".to_owned()]).await;
    let tries = Arc::new(std::sync::atomic::AtomicU32::new(0));
    let counted = tries.clone();
    let select = service.named(
        "SELECT id FROM {schema}.sagas WHERE state = 'PENDING' LIMIT $1 FOR UPDATE SKIP LOCKED",
    );
    let stuck = service.events.stuck(select.0, move |tx, _| {
        let tries = counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Box::pin(async move {
            if tries == 0 {
                let deadlock =
                    "DO $$ BEGIN RAISE EXCEPTION 'on purpose' USING ERRCODE = '40P01'; END $$";
                query(deadlock).execute(tx).await?;
            }
            Ok::<_, BoxError>(Vec::new())
        })
    });
    let compensated = stuck.compensate(10).await.unwrap();
    assert_eq!((compensated.done, compensated.failed.len()), (1, 0));
    assert_eq!(tries.load(std::sync::atomic::Ordering::Relaxed), 2);
}

#[tokio::test]
async fn a_watchdogs_statement_that_is_wrong_says_so() {
    let service = Service::fresh().await;
    let stuck = service
        .events
        .stuck("SELECT id FROM nowhere LIMIT $1", |_, _| {
            Box::pin(async { Ok(Vec::new()) })
        });
    let error = stuck.compensate(10).await.unwrap_err();
    assert_eq!(error.trouble(), Trouble::Incompatible);
    assert!(error.to_string().contains("nowhere"), "{error}");
}

#[tokio::test]
async fn a_row_that_makes_no_sense_is_told_alone() {
    let service = Service::fresh().await;
    let sound = Event::builder("sound").build().unwrap();
    service.put(vec![event("broken"), sound], true).await;
    let broken = service.named("UPDATE {schema}.events SET head = 'torn' WHERE id = 'broken'");
    query(broken).execute(&service.pool).await.unwrap();
    let claimed = service
        .events
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

#[tokio::test]
async fn puts_that_do_not_notify_are_found_by_whoever_is_woken() {
    let service = Service::fresh().await;
    let url = mamparo_testkit::private::PrivatePostgres::shared()
        .await
        .url();
    let settings = crate::tests::support::settings(&url).schema(crate::tests::support::schema());
    let quiet = crate::PostgresEvents::builder(settings.build().unwrap()).notify(false);
    let quiet = quiet.connect().await.unwrap();
    // What it hears when it begins to listen.
    quiet.ready(Duration::from_secs(20)).await;
    let mut transaction = service.pool.begin().await.unwrap();
    quiet.put(&mut transaction, &event("a")).await.unwrap();
    transaction.commit().await.unwrap();
    let woken = tokio::time::timeout(
        Duration::from_millis(300),
        quiet.ready(Duration::from_secs(60)),
    );
    assert!(woken.await.is_err());
    quiet.wake();
    quiet.ready(Duration::from_secs(60)).await;
    assert_eq!(
        quiet
            .claim(10, Duration::from_secs(9))
            .await
            .unwrap()
            .events
            .len(),
        1
    );
}
