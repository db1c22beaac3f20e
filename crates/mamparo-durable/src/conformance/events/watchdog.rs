//! What a [`Watchdog`] promises.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use super::EventBackend;
use super::support::{Broker, Heard, relay, until, until_empty};
use crate::events::Watchdog;
use crate::machine::AlertKind;
use crate::supervise::{Supervised, Supervisor};

/// As many as are stuck in the suite.
const STUCK: usize = 10_000;

fn watchdog(backend: &dyn EventBackend, heard: &Arc<Heard>) -> Supervised {
    let watchdog = Watchdog::builder("payment-timeout", backend.stuck())
        .every(Duration::from_millis(100))
        .build()
        .unwrap();
    Supervisor::new()
        .worker(watchdog)
        .listener(heard.clone())
        .run()
}

async fn until_none_is_left(backend: &dyn EventBackend, left: u64) {
    until("they are cancelled", || async {
        backend.sagas("PENDING").await == left
    })
    .await;
}

/// Two watchdogs, 100 a transaction, and two relays behind them.
pub async fn two_watchdogs_cancel_each_stuck_saga_once(backend: Arc<dyn EventBackend>) {
    backend
        .begin((0..STUCK).map(|number| format!("order-{number}")).collect())
        .await;
    let (broker, heard) = (Arc::new(Broker::default()), Arc::new(Heard::default()));
    let watchdogs = [(); 2].map(|()| watchdog(&*backend, &heard));
    let relays = [(); 2].map(|()| relay(backend.store(), &broker, &heard));
    until_none_is_left(&*backend, 0).await;
    until_empty(&*backend.store()).await;
    for worker in watchdogs.into_iter().chain(relays) {
        worker.stop().await.unwrap();
    }
    assert_eq!(backend.sagas("CANCELLED").await, 10_000);
    let log = broker.taken();
    assert_eq!(log.len(), STUCK, "each event once");
    assert_eq!(log.iter().collect::<HashSet<_>>().len(), STUCK);
    assert!(heard.of(AlertKind::Uncompensated).is_empty());
}

/// It stays as it was, without its event, and is told.
pub async fn a_saga_that_cannot_be_compensated_stops_no_other(backend: Arc<dyn EventBackend>) {
    let sagas = ["a", "broken-1", "b"].map(str::to_owned);
    backend.begin(sagas.to_vec()).await;
    let (broker, heard) = (Arc::new(Broker::default()), Arc::new(Heard::default()));
    let watchdog = watchdog(&*backend, &heard);
    until_none_is_left(&*backend, 1).await;
    until("it is told", || async {
        !heard.of(AlertKind::Uncompensated).is_empty()
    })
    .await;
    assert!(watchdog.is_ready());
    watchdog.stop().await.unwrap();
    let told = &heard.of(AlertKind::Uncompensated)[0];
    assert!(told.starts_with("payment-timeout: broken-1: "), "{told}");
    let relay = relay(backend.store(), &broker, &heard);
    until_empty(&*backend.store()).await;
    relay.stop().await.unwrap();
    let mut log = broker.taken();
    log.sort();
    assert_eq!(log, ["a/cancelled", "b/cancelled"]);
}
