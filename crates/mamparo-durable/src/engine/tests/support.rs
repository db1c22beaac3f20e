//! What the tests of the engine share.

use std::future::ready;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use mamparo_core::BoxError;
use mamparo_core::clock::{self, Instant, WallClock};
use tower::Service;

use crate::backend::Request;
use crate::engine::{Engine, EngineBuilder, Transaction};
use crate::handler::Listener;
use crate::machine::{Alert, Answer, Outcome, Record, TransactionId};
use crate::memory::Memory;
use crate::policy::{Policies, Policy, Wait};

/// A wall clock that paused time moves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Paused(Instant);

impl Paused {
    pub(super) fn new() -> Self {
        Self(clock::now())
    }
}

impl WallClock for Paused {
    fn now(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(1_700_000_000) + (clock::now() - self.0)
    }
}

/// Keeps alerts, for tests to look at.
#[derive(Debug, Default)]
pub(super) struct Heard {
    pub(super) alerts: Mutex<Vec<Alert>>,
    pub(super) postponed: Mutex<u64>,
    pub(super) forgotten: Mutex<u64>,
}

impl Heard {
    pub(super) fn kinds(&self) -> Vec<&'static str> {
        let alerts = self.alerts.lock().unwrap();
        alerts.iter().map(|alert| alert.kind.as_str()).collect()
    }
}

impl Listener for Heard {
    fn alert(&self, alert: &Alert) {
        self.alerts.lock().unwrap().push(alert.clone());
    }

    fn postponed(&self, _: &crate::machine::Label, transactions: u64) {
        *self.postponed.lock().unwrap() += transactions;
    }

    fn forgotten(&self, transactions: u64) {
        *self.forgotten.lock().unwrap() += transactions;
    }
}

/// What was sent, and when.
#[derive(Clone, Debug, Default)]
pub(super) struct Sent(Arc<Mutex<Vec<(String, Instant)>>>);

impl Sent {
    pub(super) fn note(&self, request: &Request) {
        self.0.lock().unwrap().push((request.key(), clock::now()));
    }

    pub(super) fn keys(&self) -> Vec<String> {
        self.0
            .lock()
            .unwrap()
            .iter()
            .map(|(key, _)| key.clone())
            .collect()
    }

    pub(super) fn instants(&self) -> Vec<Instant> {
        self.0.lock().unwrap().iter().map(|(_, at)| *at).collect()
    }

    /// Does all that it is sent.
    pub(super) fn provider(
        &self,
    ) -> impl Service<Request, Response = Option<Answer>, Error = BoxError, Future: Send>
    + Clone
    + Send
    + Sync
    + use<> {
        let sent = self.clone();
        tower::service_fn(move |request: Request| {
            sent.note(&request);
            ready(Ok(Some(request.answer(Outcome::Success))))
        })
    }
}

pub(super) const MINUTE: Duration = Duration::from_secs(60);

/// Waits of exactly a minute.
pub(super) fn policies() -> Policies {
    let wait = Wait::builder()
        .base(MINUTE)
        .factor(1.0)
        .cap(MINUTE)
        .jitter(0.0);
    let wait = wait.build().unwrap();
    let policy = Policy::builder()
        .business(wait)
        .technical(wait)
        .postponed(wait);
    Policies::new(policy.build().unwrap())
}

pub(super) fn on(memory: &Memory, clock: Paused) -> EngineBuilder {
    Engine::builder(memory.backend())
        .wall_clock(clock)
        .policies(policies())
}

pub(super) fn id(text: &str) -> TransactionId {
    TransactionId::new(text).unwrap()
}

pub(super) fn payment(name: &str) -> Transaction {
    Transaction::new(id(name), "payment", "5 EUR").dependency("psp")
}

pub(super) async fn stored(engine: &Engine, name: &str) -> Record {
    engine.load(&id(name)).await.unwrap().unwrap()
}

/// Waits until a transaction is at its end.
pub(super) async fn ended(engine: &Engine, name: &str) -> Record {
    loop {
        let record = stored(engine, name).await;
        if record.progress.state.is_terminal() {
            return record;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
