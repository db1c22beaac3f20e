//! What only a server has.

use std::sync::Arc;
use std::time::Duration;

use mamparo_core::{BoxError, clock};
use mamparo_durable::backend::Trouble;
use mamparo_durable::conformance::events::EventBackend as _;
use mamparo_durable::events::{Event, EventStore as _};
use mamparo_testkit::private::PrivatePostgres;
use mamparo_testkit::proxy::{Fault, FaultProxy};
use sqlx::query;

use super::support::Service;
use crate::PostgresEvents;
use crate::tests::support::{schema, settings};

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
async fn puts_that_do_not_notify_are_found_by_whoever_is_woken() {
    let service = Service::fresh().await;
    let url = PrivatePostgres::shared().await.url();
    let settings = settings(&url).schema(schema());
    let quiet = PostgresEvents::builder(settings.build().unwrap()).notify(false);
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

/// The network swallows what the server says: the server knows nothing of it, and bounds nothing.
#[tokio::test]
async fn a_watchdog_that_gets_no_answer_ends_and_says_so() {
    let server = PrivatePostgres::shared().await;
    let proxy = FaultProxy::start(server.address()).await;
    let settings = settings(&server.url_at(proxy.address()))
        .schema(schema())
        .acquire_timeout(Duration::from_secs(1))
        .statement_timeout(Duration::from_secs(1));
    let events = PostgresEvents::connect(settings.build().unwrap()).await;
    let events = events.unwrap();
    let stuck = events.stuck("SELECT 'a' WHERE $1 > 0", |tx, _| {
        Box::pin(async move {
            query("SELECT 1").execute(tx).await?;
            Ok(Vec::new())
        })
    });
    assert_eq!(stuck.compensate(1).await.unwrap().done, 1);
    proxy.set(Fault::BlackHole).await;
    let began = clock::now();
    for _ in 0..3 {
        let error = stuck.compensate(1).await.unwrap_err();
        assert_eq!(error.trouble(), Trouble::Unavailable);
    }
    assert!(began.elapsed() < Duration::from_secs(15));
    proxy.set(Fault::None).await;
    assert_eq!(stuck.compensate(1).await.unwrap().done, 1);
}

#[tokio::test]
async fn who_connects_to_what_exists_makes_no_schema() {
    let url = PrivatePostgres::shared().await.url();
    let there = schema();
    let existing = async |name: &str| {
        let settings = settings(&url).schema(name).build().unwrap();
        PostgresEvents::builder(settings).existing().connect().await
    };
    for _ in 0..2 {
        let error = existing(&there).await.unwrap_err();
        assert_eq!(error.trouble(), Trouble::Incompatible);
        assert!(error.to_string().contains("no such tables"), "{error}");
    }
    let settings = settings(&url).schema(&there).build().unwrap();
    PostgresEvents::connect(settings)
        .await
        .unwrap()
        .close()
        .await;
    let events = existing(&there).await.unwrap();
    assert_eq!(events.backlog().await.unwrap().parked, 0);
}
