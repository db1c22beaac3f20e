//! A limit that replicas share, over a store that does as told.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mamparo_core::{CallContext, Deadline, Event, Observer, Reason, What, carry, clock};
use tokio::task::JoinSet;
use tower::{Layer, ServiceExt};

use super::super::{Ask, Granted, LimitStore, RateLimitLayer, Replicas, Taking};
use super::cast::{limit, millis, peer, per_second, rejection, retry_after, secs};

/// Grants so much in all, after a while.
#[derive(Clone, Debug, Default)]
struct Store {
    has: Arc<AtomicU32>,
    asks: Arc<Mutex<Vec<Ask>>>,
    takes: Arc<Mutex<Duration>>,
    fails: Arc<AtomicU32>,
}

impl Store {
    fn with(has: u32) -> Self {
        let store = Self::default();
        store.has.store(has, Relaxed);
        store
    }

    fn asked(&self) -> usize {
        self.asks.lock().unwrap().len()
    }
}

impl LimitStore for Store {
    fn take(&self, ask: Ask) -> Taking<'_> {
        self.asks.lock().unwrap().push(ask);
        let takes = *self.takes.lock().unwrap();
        Box::pin(async move {
            tokio::time::sleep(takes).await;
            if self.fails.load(Relaxed) > 0 {
                return Err("connection refused".into());
            }
            let has = self.has.load(Relaxed);
            let taken = if has < ask.cost {
                0
            } else {
                has.min(ask.cost + ask.more)
            };
            self.has.fetch_sub(taken, Relaxed);
            let full_in = if taken == 0 { secs(10) } else { Duration::ZERO };
            Ok(Granted { taken, full_in })
        })
    }
}

#[derive(Debug, Default)]
struct Switches(Mutex<Vec<String>>);

impl Observer for Switches {
    fn on(&self, event: &Event<'_>) {
        let words = match event.what {
            What::RateLimitStoreAway { error } => format!("away: {error}"),
            What::RateLimitStoreBack { after } => format!("back: {after:?}"),
            _ => return,
        };
        self.0.lock().unwrap().push(words);
    }
}

fn shared(store: &Store, replicas: Replicas) -> RateLimitLayer {
    limit(per_second(10))
        .shared(store.clone(), replicas)
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn calls_that_come_together_ask_once_for_all() {
    let store = Store::with(100);
    *store.takes.lock().unwrap() = millis(10);
    let service = shared(&store, Replicas::of(2)).layer(peer());
    let calls: JoinSet<_> = (0..8).map(|call| service.clone().oneshot(call)).collect();
    let answers = calls.join_all().await;
    assert!(answers.iter().all(Result::is_ok));
    // The first came alone, the others while it asked.
    assert_eq!(store.asked(), 1 + 1);
    assert_eq!(
        store.has.load(Relaxed),
        100 - 8,
        "and nothing is taken besides"
    );
}

#[tokio::test(start_paused = true)]
async fn a_batch_pays_for_the_next_calls() {
    let store = Store::with(100);
    let service = shared(&store, Replicas::of(2).batch(4)).layer(peer());
    for call in 0..8 {
        service.clone().oneshot(call).await.unwrap();
    }
    assert_eq!(store.asked(), 2);
}

/// They would pass besides a burst, in an hour as well.
#[tokio::test(start_paused = true)]
async fn what_was_taken_for_those_that_went_away_is_forgotten() {
    let store = Store::with(100);
    *store.takes.lock().unwrap() = millis(10);
    let service = shared(&store, Replicas::of(2)).layer(peer());
    let calls: Vec<_> = (0..8)
        .map(|call| tokio::spawn(service.clone().oneshot(call)))
        .collect();
    // The first has asked for itself, and the second asks for all behind it.
    tokio::time::sleep(millis(15)).await;
    for gone in &calls[2..] {
        gone.abort();
    }
    tokio::time::sleep(millis(15)).await;
    assert_eq!((store.asked(), store.has.load(Relaxed)), (2, 100 - 8));
    service.clone().oneshot(9).await.unwrap();
    assert_eq!(store.asked(), 3);
}

/// A call whose deadline is over must not be asked for, however long those before it ask.
#[tokio::test(start_paused = true)]
async fn nobody_waits_for_those_that_ask_past_its_deadline() {
    let store = Store::with(100);
    *store.takes.lock().unwrap() = millis(500);
    let replicas = Replicas::of(2).answer_within(secs(1));
    let service = shared(&store, replicas).layer(peer());
    let first = tokio::spawn(service.clone().oneshot(1));
    tokio::time::sleep(millis(1)).await;
    let began = clock::now();
    let deadline = Deadline::after(began, millis(100));
    let mut context = CallContext::default().with_deadline(deadline);
    let second = context.enter(|| carry(service.clone().oneshot(2)));
    assert_eq!(
        rejection(&second.await.unwrap_err()).reason(),
        Reason::RateLimited
    );
    assert!(began.elapsed() <= millis(100), "{:?}", began.elapsed());
    first.await.unwrap().unwrap();
    assert_eq!(store.asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_was_refused_is_not_asked_for_again_until_it_would_pass() {
    let store = Store::with(0);
    let service = shared(&store, Replicas::of(2)).layer(peer());
    for _ in 0..5 {
        let error = service.clone().oneshot(1).await.unwrap_err();
        assert_eq!(retry_after(&error), secs(9) + millis(100));
    }
    assert_eq!(store.asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_away_leaves_each_replica_its_share_without_a_burst() {
    let (store, switches) = (Store::with(100), Arc::new(Switches::default()));
    store.fails.store(1, Relaxed);
    let layer = shared(&store, Replicas::of(2)).observer(switches.clone());
    let service = layer.layer(peer());
    let mut passed = 0;
    for _ in 0..400 {
        passed += u32::from(service.clone().oneshot(1).await.is_ok());
        tokio::time::sleep(millis(10)).await;
    }
    // Five a second, and the first at once.
    assert!((20..=21).contains(&passed), "{passed}");
    assert_eq!(store.asked(), 4, "once a second");
    store.fails.store(0, Relaxed);
    tokio::time::sleep(secs(1)).await;
    service.clone().oneshot(1).await.unwrap();
    let switches = switches.0.lock().unwrap();
    assert_eq!(switches[0], "away: connection refused");
    assert!(
        switches[1].starts_with("back: 5") && switches.len() == 2,
        "{switches:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_store_that_does_not_answer_is_waited_for_as_long_as_stated() {
    let store = Store::with(100);
    *store.takes.lock().unwrap() = secs(100);
    let replicas = Replicas::of(2).answer_within(millis(30));
    let service = shared(&store, replicas).layer(peer());
    let began = clock::now();
    service.clone().oneshot(1).await.unwrap();
    assert_eq!(began.elapsed(), millis(30));
    service.clone().oneshot(1).await.unwrap_err();
    assert_eq!(began.elapsed(), millis(30), "the next is decided at once");
}

#[tokio::test(start_paused = true)]
async fn keys_are_the_same_in_every_replica_and_told_apart() {
    let store = Store::with(100);
    let layer = || limit(per_second(10)).per_key(|call: &u32| Some(format!("caller {call}")));
    let one = layer().shared(store.clone(), Replicas::of(2)).unwrap();
    let other = layer().shared(store.clone(), Replicas::of(2)).unwrap();
    let (one, other) = (one.layer(peer()), other.layer(peer()));
    one.clone().oneshot(1).await.unwrap();
    other.clone().oneshot(1).await.unwrap();
    other.clone().oneshot(2).await.unwrap();
    let asks = store.asks.lock().unwrap();
    assert_eq!(asks[0].key, asks[1].key);
    assert_ne!(asks[1].key, asks[2].key);
}

#[tokio::test(start_paused = true)]
async fn what_costs_more_than_the_burst_is_never_asked_for() {
    let store = Store::with(100);
    let layer = limit(per_second(10)).cost(|call: &u32| *call);
    let layer = layer.shared(store.clone(), Replicas::of(2)).unwrap();
    let error = layer.layer(peer()).oneshot(11).await.unwrap_err();
    assert_eq!(rejection(&error).reason(), Reason::AboveBurst);
    assert_eq!(store.asked(), 0);
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    for replicas in [
        Replicas::of(0),
        Replicas::of(2).batch(0),
        Replicas::of(2).answer_within(Duration::ZERO),
        Replicas::of(2).ask_again_after(Duration::ZERO),
    ] {
        assert!(
            limit(per_second(1))
                .shared(Store::default(), replicas)
                .is_err()
        );
    }
}
