//! What a backend does for the suite, and a broker that does as it is told.

use std::collections::{HashMap, HashSet};
use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::backend::{BackendError, BoxFuture};
use crate::events::{
    Backlog, ClaimId, Claimed, Event, EventStore, ParkedEvent, Published, Publisher, Relay, Seen,
    Settlement, StuckSagas,
};
use crate::handler::Listener;
use crate::machine::{Alert, AlertKind};
use crate::supervise::{Supervised, Supervisor};

/// A backend of events, as a service's code uses it.
///
/// It keeps a table of effects, one number a row, and a table of sagas, of which a new one is `PENDING`.
pub trait EventBackend: Debug + Send + Sync + 'static {
    /// Returns what relays work with.
    fn store(&self) -> Arc<dyn EventStore>;

    /// Puts events in one transaction, and commits or rolls back.
    fn put(&self, events: Vec<Event>, commit: bool) -> BoxFuture<'_, ()>;

    /// Puts an event in a transaction that stays open; what is returned commits it. `None` where nothing else could be written meanwhile.
    fn put_late(&self, event: Event) -> BoxFuture<'_, Option<BoxFuture<'static, ()>>>;

    /// Overwrites what is stored of an event's content type and headers with `torn`.
    fn tear(&self, id: &str) -> BoxFuture<'_, ()>;

    /// Processes a message in one transaction, adds an effect if it is seen for the first time, and commits or rolls back.
    fn process(&self, consumer: &str, id: &str, commit: bool) -> BoxFuture<'_, Seen>;

    /// Counts the effects.
    fn effects(&self) -> BoxFuture<'_, u64>;

    /// Forgets at most `limit` messages that are older than a millisecond.
    fn sweep(&self, limit: usize) -> BoxFuture<'_, usize>;

    /// Begins sagas of these ids.
    fn begin(&self, sagas: Vec<String>) -> BoxFuture<'_, ()>;

    /// Returns what finds those that are `PENDING`, makes them `CANCELLED` and puts the event `{id}/cancelled`. Of those whose id begins
    /// with `broken` it fails after the change.
    fn stuck(&self) -> Arc<dyn StuckSagas>;

    /// Counts those in a state.
    fn sagas(&self, state: &str) -> BoxFuture<'_, u64>;
}

pub(super) const LONG: Duration = Duration::from_secs(60);

/// As long as anything is waited for that must happen.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) fn event(id: impl Into<String>, key: Option<&str>) -> Event {
    let event = Event::builder(id).to("orders", "order.placed");
    let event = match key {
        Some(key) => event.key(key),
        None => event,
    };
    event.payload("{}").build().unwrap()
}

/// Events `key/0`, `key/1` and so on of each key, those of different keys in turn.
pub(super) fn of_keys(keys: usize, each: usize) -> Vec<Event> {
    let numbers = (0..each).flat_map(|number| (0..keys).map(move |key| (key, number)));
    numbers
        .map(|(key, number)| event(format!("k{key}/{number}"), Some(&format!("k{key}"))))
        .collect()
}

/// Claims, and returns the ids.
pub(super) async fn claim(
    store: &dyn EventStore,
    limit: usize,
    lease: Duration,
) -> (ClaimId, Vec<(i64, String)>) {
    let claimed = store.claim(limit, lease).await.unwrap();
    let events = claimed.events.into_iter();
    let ids = events.map(|event| (event.number, event.event.unwrap().id().to_owned()));
    (claimed.id, ids.collect())
}

pub(super) fn ids(claimed: &[(i64, String)]) -> Vec<&str> {
    claimed.iter().map(|(_, id)| id.as_str()).collect()
}

pub(super) async fn settle(
    store: &dyn EventStore,
    claim: ClaimId,
    number: i64,
    to: Settlement,
) -> usize {
    store.settle(claim, vec![(number, to)]).await.unwrap()
}

pub(super) const fn later(wait: Duration) -> Settlement {
    Settlement::Later {
        wait,
        failed: false,
    }
}

/// Keeps what it was given, and says what it is told to.
#[derive(Debug, Default)]
pub(super) struct Broker {
    pub(super) log: Mutex<Vec<String>>,
    /// Refused for good, by their ids.
    pub(super) poison: Mutex<HashSet<String>>,
    /// Not now, so many times more.
    pub(super) fails: Mutex<HashMap<String, u32>>,
    /// Takes nothing at all.
    pub(super) down: Mutex<bool>,
    /// Taken, and never confirmed, by their ids.
    pub(super) silent: Mutex<HashSet<String>>,
    /// What was not confirmed once may have come all the same.
    pub(super) forgetful: bool,
    pub(super) under_way: AtomicU32,
    pub(super) forgets: AtomicBool,
}

impl Broker {
    pub(super) fn taken(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }

    fn take(&self, event: &Event) -> Published {
        if self.poison.lock().unwrap().contains(event.id()) {
            return Published::Refused("no queue takes it".to_owned());
        }
        if *self.down.lock().unwrap() {
            return Published::NotNow("it is down".to_owned());
        }
        if let Some(left) = self.fails.lock().unwrap().get_mut(event.id())
            && *left > 0
        {
            *left -= 1;
            return Published::NotNow("it is busy".to_owned());
        }
        self.log.lock().unwrap().push(event.id().to_owned());
        Published::Confirmed
    }
}

impl Publisher for Broker {
    fn publish<'a>(&'a self, event: &'a Event) -> BoxFuture<'a, Published> {
        Box::pin(async move {
            // All that are under way together share a connection.
            if self.under_way.fetch_add(1, Ordering::Relaxed) == 0 {
                let breaks = self.forgetful && fastrand::u8(..8) == 0;
                self.forgets.store(breaks, Ordering::Relaxed);
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
            let taken = self.take(event);
            self.under_way.fetch_sub(1, Ordering::Relaxed);
            if self.silent.lock().unwrap().contains(event.id()) {
                return std::future::pending().await;
            }
            match self.forgets.load(Ordering::Relaxed) {
                true => Published::NotNow("the connection broke".to_owned()),
                false => taken,
            }
        })
    }
}

/// Keeps alerts.
#[derive(Debug, Default)]
pub(super) struct Heard {
    alerts: Mutex<Vec<Alert>>,
    pub(super) lags: Mutex<Vec<(Backlog, Duration)>>,
    pub(super) unconfirmed: AtomicU64,
}

impl Heard {
    pub(super) fn of(&self, kind: AlertKind) -> Vec<String> {
        let alerts = self.alerts.lock().unwrap();
        let of = alerts.iter().filter(|alert| alert.kind == kind);
        of.map(|alert| {
            alert
                .detail
                .as_ref()
                .map_or("", |detail| detail.as_str())
                .to_owned()
        })
        .collect()
    }
}

impl Listener for Heard {
    fn alert(&self, alert: &Alert) {
        self.alerts.lock().unwrap().push(alert.clone());
    }

    fn unconfirmed(&self, _: &str, events: u64) {
        self.unconfirmed.fetch_add(events, Ordering::Relaxed);
    }

    fn backlog(&self, _: &str, backlog: &Backlog, lag: Duration) {
        self.lags.lock().unwrap().push((backlog.clone(), lag));
    }
}

pub(super) fn relay(
    store: Arc<dyn EventStore>,
    broker: &Arc<Broker>,
    listener: &Arc<Heard>,
) -> Supervised {
    let relay = Relay::builder("orders", store, broker.clone())
        .max_failures(3)
        .build()
        .unwrap();
    Supervisor::new()
        .worker(relay)
        .listener(listener.clone())
        .run()
}

pub(super) async fn until<F: Future<Output = bool>>(what: &str, mut condition: impl FnMut() -> F) {
    let met = async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let met = tokio::time::timeout(PATIENCE, met).await;
    assert!(met.is_ok(), "{what}: not after {PATIENCE:?}");
}

pub(super) async fn until_empty(store: &dyn EventStore) {
    until("all is published", || async {
        store.backlog().await.unwrap().waiting == 0
    })
    .await;
}

/// Fails where an event of a key came before one that was put before it.
pub(super) fn assert_in_order(log: &[String]) {
    let mut last: HashMap<&str, u32> = HashMap::new();
    for id in log {
        let (key, number) = id.split_once('/').unwrap();
        let number: u32 = number.parse().unwrap();
        let before = last.insert(key, number);
        assert!(
            before.is_none_or(|before| before < number),
            "{id} came after {key}/{before:?}"
        );
    }
}

/// Each once: the first time that it came.
pub(super) fn deduplicated(log: &[String]) -> Vec<String> {
    let mut seen = HashSet::new();
    log.iter().filter(|id| seen.insert(*id)).cloned().collect()
}

/// A store whose relay dies, as by a power cut, when it would say what was published.
#[derive(Debug)]
pub(super) struct Dying(pub(super) Arc<dyn EventStore>);

impl EventStore for Dying {
    fn claim(&self, limit: usize, _: Duration) -> BoxFuture<'_, Result<Claimed, BackendError>> {
        // The next relay must not wait for long.
        self.0.claim(limit, Duration::from_millis(400))
    }

    fn settle(
        &self,
        _: ClaimId,
        _: Vec<(i64, Settlement)>,
    ) -> BoxFuture<'_, Result<usize, BackendError>> {
        Box::pin(std::future::pending())
    }

    fn ready(&self, longest: Duration) -> BoxFuture<'_, ()> {
        self.0.ready(longest)
    }

    fn backlog(&self) -> BoxFuture<'_, Result<Backlog, BackendError>> {
        self.0.backlog()
    }

    fn parked(
        &self,
        after: i64,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<ParkedEvent>, BackendError>> {
        self.0.parked(after, limit)
    }

    fn unpark(&self, numbers: Vec<i64>) -> BoxFuture<'_, Result<usize, BackendError>> {
        self.0.unpark(numbers)
    }

    fn discard(&self, numbers: Vec<i64>) -> BoxFuture<'_, Result<usize, BackendError>> {
        self.0.discard(numbers)
    }
}
