//! What a [`Relay`] promises.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::EventBackend;
use super::support::{
    Broker, Dying, Heard, assert_in_order, deduplicated, event, of_keys, relay, until, until_empty,
};
use crate::events::Relay;
use crate::machine::AlertKind;
use crate::supervise::Supervisor;

/// Two relays, and services that put meanwhile: each event once, since none of them crashes.
pub async fn two_relays_publish_each_event_once_and_in_order_per_key(
    backend: Arc<dyn EventBackend>,
) {
    let (broker, heard) = (Arc::new(Broker::default()), Arc::new(Heard::default()));
    let relays = [(); 2].map(|()| relay(backend.store(), &broker, &heard));
    for events in of_keys(30, 40).chunks(60) {
        backend.put(events.to_vec(), true).await;
    }
    until_empty(&*backend.store()).await;
    for relay in relays {
        relay.stop().await.unwrap();
    }
    let log = broker.taken();
    assert_eq!(log.len(), 30 * 40);
    assert_in_order(&log);
}

/// At least once, and never a later one first.
pub async fn a_broker_that_forgets_to_confirm_gets_some_twice_and_none_out_of_order(
    backend: Arc<dyn EventBackend>,
) {
    let broker = Arc::new(Broker {
        forgetful: true,
        ..Broker::default()
    });
    let heard = Arc::new(Heard::default());
    backend.put(of_keys(10, 20), true).await;
    let relay = relay(backend.store(), &broker, &heard);
    until_empty(&*backend.store()).await;
    relay.stop().await.unwrap();
    let first = deduplicated(&broker.taken());
    assert_eq!(first.len(), 200);
    assert_in_order(&first);
}

/// At least once: the next relay publishes again what the first one's lease held, and the inbox drops it.
pub async fn a_relay_killed_before_it_says_what_it_published_doubles_and_loses_nothing(
    backend: Arc<dyn EventBackend>,
) {
    let (broker, heard) = (Arc::new(Broker::default()), Arc::new(Heard::default()));
    backend.put(of_keys(5, 4), true).await;
    let dying = Arc::new(Dying(backend.store()));
    let killed = relay(dying, &broker, &heard);
    until("the first round is published", || async {
        broker.taken().len() >= 5
    })
    .await;
    drop(killed);
    let next = relay(backend.store(), &broker, &heard);
    until_empty(&*backend.store()).await;
    next.stop().await.unwrap();
    let log = broker.taken();
    assert!(
        log.len() > 20,
        "what was published and not marked came twice"
    );
    for id in &log {
        backend.process("stock", id, true).await;
    }
    assert_eq!(backend.effects().await, 20);
    assert_in_order(&deduplicated(&log));
}

/// A row that has a lower number and becomes visible later. Where one transaction writes at a time there is none.
pub async fn an_event_that_commits_late_is_not_skipped(backend: Arc<dyn EventBackend>) {
    let Some(commit) = backend.put_late(event("late", None)).await else {
        return;
    };
    let (broker, heard) = (Arc::new(Broker::default()), Arc::new(Heard::default()));
    let relay = relay(backend.store(), &broker, &heard);
    backend.put(vec![event("early", None)], true).await;
    until("the early one is published", || async {
        broker.taken() == ["early"]
    })
    .await;
    commit.await;
    until("the late one is published", || async {
        broker.taken() == ["early", "late"]
    })
    .await;
    relay.stop().await.unwrap();
}

/// And told; a person gives it back once the fault is mended.
pub async fn poison_is_parked_and_told_while_others_go_on(backend: Arc<dyn EventBackend>) {
    let (broker, heard) = (Arc::new(Broker::default()), Arc::new(Heard::default()));
    broker.poison.lock().unwrap().insert("k1/1".to_owned());
    backend.put(of_keys(3, 4), true).await;
    let relay = relay(backend.store(), &broker, &heard);
    until("the others are published", || async {
        broker.taken().len() == 9
    })
    .await;
    let store = backend.store();
    until("the poison is parked", || async {
        store.backlog().await.unwrap().parked == 1
    })
    .await;
    assert!(
        !broker.taken().iter().any(|id| id == "k1/2"),
        "its key waits"
    );
    let told = heard.of(AlertKind::EventParked);
    assert_eq!(told.len(), 1);
    assert!(
        told[0].starts_with("orders: event ") && told[0].ends_with("no queue takes it"),
        "{told:?}"
    );
    assert!(relay.is_ready());

    broker.poison.lock().unwrap().clear();
    let parked = store.parked(0, 10).await.unwrap();
    store.unpark(vec![parked[0].number]).await.unwrap();
    until_empty(&*store).await;
    relay.stop().await.unwrap();
    let log = broker.taken();
    assert_eq!(log.len(), 12);
    assert_in_order(&log);
}

/// It has three tries, with waits between.
pub async fn an_event_that_fails_while_others_are_confirmed_is_tried_again_and_then_parked(
    backend: Arc<dyn EventBackend>,
) {
    let (broker, heard) = (Arc::new(Broker::default()), Arc::new(Heard::default()));
    broker
        .fails
        .lock()
        .unwrap()
        .extend([("twice/0".to_owned(), 2), ("ever/0".to_owned(), 99)]);
    let mut events = vec![
        event("ever/0", Some("ever")),
        event("twice/0", Some("twice")),
    ];
    // Something is confirmed beside them each time: else it would be an outage.
    events.extend(of_keys(1, 3));
    backend.put(events, true).await;
    let relay = relay(backend.store(), &broker, &heard);
    let store = backend.store();
    let put = async {
        loop {
            backend
                .put(
                    vec![event(format!("more/{}", fastrand::u64(..)), None)],
                    true,
                )
                .await;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let parked = until("it is parked", || async {
        store.backlog().await.unwrap().parked == 1
    });
    tokio::select! {
        () = put => {}
        () = parked => {}
    }
    until_empty(&*store).await;
    relay.stop().await.unwrap();
    assert!(broker.taken().iter().any(|id| id == "twice/0"));
    assert_eq!(heard.of(AlertKind::EventParked).len(), 1);
}

/// What was confirmed beside it is done.
pub async fn a_confirmation_that_never_comes_doubles_no_other(backend: Arc<dyn EventBackend>) {
    let (broker, heard) = (Arc::new(Broker::default()), Arc::new(Heard::default()));
    broker.silent.lock().unwrap().insert("k1/0".to_owned());
    backend.put(of_keys(3, 2), true).await;
    let relay = Relay::builder("orders", backend.store(), broker.clone())
        .publish_timeout(Duration::from_millis(200))
        .build()
        .unwrap();
    let relay = Supervisor::new()
        .worker(relay)
        .listener(heard.clone())
        .run();
    until("it was tried again", || async {
        let taken = broker.taken();
        taken.iter().filter(|id| *id == "k1/0").count() > 1
    })
    .await;
    relay.stop().await.unwrap();
    let mut others = broker.taken();
    others.retain(|id| id != "k1/0");
    others.sort();
    assert_eq!(others, ["k0/0", "k0/1", "k2/0", "k2/1"]);
}

/// What waits for the broker keeps the relay from nothing else.
pub async fn while_a_full_claim_waits_another_is_published(backend: Arc<dyn EventBackend>) {
    let broker = Arc::new(Broker::default());
    broker.silent.lock().unwrap().insert("k0/0".to_owned());
    backend.put(of_keys(2, 1), true).await;
    let relay = Relay::builder("orders", backend.store(), broker.clone())
        .batch(1)
        .lease(Duration::from_secs(600))
        .publish_timeout(Duration::from_secs(300))
        .build()
        .unwrap();
    let _relay = Supervisor::new().worker(relay).run();
    until("the other is published", || async {
        broker.taken().iter().any(|id| id == "k1/0")
    })
    .await;
}

/// It is told once, readiness is false meanwhile, and no event is blamed.
pub async fn a_broker_that_is_down_is_waited_for_and_nothing_is_parked(
    backend: Arc<dyn EventBackend>,
) {
    let (broker, heard) = (Arc::new(Broker::default()), Arc::new(Heard::default()));
    *broker.down.lock().unwrap() = true;
    backend.put(of_keys(2, 2), true).await;
    let relay = relay(backend.store(), &broker, &heard);
    until("it is not ready", || async { !relay.is_ready() }).await;
    tokio::time::sleep(Duration::from_millis(800)).await;
    assert_eq!(heard.of(AlertKind::BackendFails).len(), 1);
    *broker.down.lock().unwrap() = false;
    let store = backend.store();
    until_empty(&*store).await;
    until("it is ready", || async { relay.is_ready() }).await;
    assert_eq!(store.backlog().await.unwrap().parked, 0);
    relay.stop().await.unwrap();
    assert_in_order(&broker.taken());
    assert!(heard.unconfirmed.load(Ordering::Relaxed) >= 2, "both keys");
    let lags = heard.lags.lock().unwrap();
    assert!(
        lags.iter().any(|(backlog, _)| backlog.waiting == 4),
        "{lags:?}"
    );
}

/// What it had claimed and not published is there for the next at once.
pub async fn a_relay_that_stops_gives_back_what_it_has_claimed(backend: Arc<dyn EventBackend>) {
    let (broker, heard) = (Arc::new(Broker::default()), Arc::new(Heard::default()));
    backend.put(of_keys(1, 30), true).await;
    let store = backend.store();
    let first = Relay::builder("orders", store.clone(), broker.clone())
        .build()
        .unwrap();
    let first = Supervisor::new().worker(first).run();
    until("some are published", || async { broker.taken().len() > 2 }).await;
    first.stop().await.unwrap();
    let next = relay(store.clone(), &broker, &heard);
    let done = tokio::time::timeout(Duration::from_secs(20), until_empty(&*store)).await;
    assert!(done.is_ok(), "it waited for the lease of 30 s");
    next.stop().await.unwrap();
    let log = broker.taken();
    assert_eq!(
        log.iter().collect::<HashSet<_>>().len(),
        log.len(),
        "none twice"
    );
    assert_in_order(&log);
}
