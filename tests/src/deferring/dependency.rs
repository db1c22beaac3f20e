//! A dependency that honours idempotency keys, and says "later", "never" or nothing as its seed says.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use fastrand::Rng;
use mamparo_core::clock::{self, Instant};
use mamparo_durable::machine::End;

use crate::served::serve;

/// The most attempts of every transaction, the original included.
pub(super) const MAX_ATTEMPTS: u32 = 4;

/// The statuses that say so.
pub(super) const LATER: StatusCode = StatusCode::CONFLICT;
pub(super) const NEVER: StatusCode = StatusCode::UNPROCESSABLE_ENTITY;
const TROUBLE: StatusCode = StatusCode::SERVICE_UNAVAILABLE;

#[derive(Clone)]
pub(super) struct Dependency {
    pub(super) address: SocketAddr,
    ledger: Arc<Mutex<Ledger>>,
}

#[derive(Default)]
struct Ledger {
    seed: u64,
    /// What was answered under each key, for good.
    answers: HashMap<String, StatusCode>,
    /// How often each key was delivered.
    deliveries: HashMap<String, u32>,
    /// When each request came.
    instants: Vec<Instant>,
    wrong: Vec<String>,
}

/// A transaction that begins with this is answered with a success after 200 ms; with the next, after a minute at first.
pub(super) const WILLING: &str = "willing";
pub(super) const STUCK: &str = "willing-and-stuck";

/// One that begins with this says "later" to its original, and to nothing else.
pub(super) const ONCE_LATER: &str = "later";

/// What this attempt is answered with, whoever asks and however often.
fn verdict(seed: u64, id: &str, attempt: u32) -> StatusCode {
    match () {
        () if id.starts_with(WILLING) => return StatusCode::OK,
        () if id.starts_with(ONCE_LATER) && attempt == 1 => return LATER,
        () if id.starts_with(ONCE_LATER) => return StatusCode::OK,
        () => {}
    }
    match rng(seed, id, attempt).u32(..100) {
        0..60 => LATER,
        60..66 => NEVER,
        _ => StatusCode::OK,
    }
}

fn rng(seed: u64, id: &str, salt: u32) -> Rng {
    let mixed = id.bytes().fold(seed ^ u64::from(salt), |mixed, byte| {
        (mixed.rotate_left(7) ^ u64::from(byte)).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    });
    Rng::with_seed(mixed)
}

impl Dependency {
    pub(super) async fn start(seed: u64) -> Self {
        let ledger = Arc::new(Mutex::new(Ledger {
            seed,
            ..Ledger::default()
        }));
        let routes = Router::new()
            .route("/", post(pay))
            .with_state(Arc::clone(&ledger));
        let address = serve(routes).await;
        Self { address, ledger }
    }

    /// How a transaction ends, and at which attempt, if nobody resolves or cancels it.
    pub(super) fn end_of(&self, id: &str) -> (End, u32) {
        let seed = self.ledger().seed;
        for attempt in 1..=MAX_ATTEMPTS {
            match verdict(seed, id, attempt) {
                StatusCode::OK => return (End::Answered, attempt),
                NEVER => return (End::Declined, attempt),
                _ => {}
            }
        }
        (End::Exhausted, MAX_ATTEMPTS)
    }

    /// What was done under the keys of this transaction, by attempt, from 1.
    pub(super) fn done(&self, id: &str) -> Vec<Option<StatusCode>> {
        let ledger = self.ledger();
        let done = |attempt| ledger.answers.get(&format!("{id}#{attempt}")).copied();
        (1..=MAX_ATTEMPTS).map(done).collect()
    }

    /// How many keys were delivered, and how many deliveries were one too many.
    pub(super) fn deliveries(&self) -> (usize, u32) {
        let ledger = self.ledger();
        let more = ledger.deliveries.values().map(|times| times - 1);
        (ledger.deliveries.len(), more.sum())
    }

    /// When each request came.
    pub(super) fn instants(&self) -> Vec<Instant> {
        self.ledger().instants.clone()
    }

    /// What must not be asked, and was.
    pub(super) fn wrong(&self) -> Vec<String> {
        self.ledger().wrong.clone()
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap()
    }
}

impl Ledger {
    /// Notes a delivery, and says what is done with it: nothing, with an error; the work, and an error; or the work, and its answer.
    fn deliver(&mut self, key: &str, id: &str) -> StatusCode {
        self.instants.push(clock::now());
        let attempt = key
            .strip_prefix(&format!("{id}#"))
            .and_then(|attempt| attempt.parse().ok());
        let Some(attempt) = attempt.filter(|attempt| (1..=MAX_ATTEMPTS).contains(attempt)) else {
            self.wrong
                .push(format!("{key} for {id} is not one of its keys"));
            return NEVER;
        };
        let before = self.answers.get(&format!("{id}#{}", attempt - 1));
        if attempt > 1 && before != Some(&LATER) {
            self.wrong
                .push(format!("{key} though the attempt before said {before:?}"));
        }
        let times = self.deliveries.entry(key.to_owned()).or_default();
        *times += 1;
        let chance = rng(self.seed, key, *times).u32(..100);
        // Only the first deliveries have bad luck, for it to end.
        let chance = if *times > 2 || id.starts_with(WILLING) {
            99
        } else {
            chance
        };
        if chance < 8 && !self.answers.contains_key(key) {
            return TROUBLE;
        }
        let said = verdict(self.seed, id, attempt);
        self.answers.entry(key.to_owned()).or_insert(said);
        if chance < 16 { TROUBLE } else { said }
    }
}

async fn pay(State(ledger): State<Arc<Mutex<Ledger>>>, head: HeaderMap, id: String) -> StatusCode {
    let key = head["idempotency-key"].to_str().unwrap().trim_matches('"');
    let (said, times) = {
        let mut ledger = ledger.lock().unwrap();
        let said = ledger.deliver(key, &id);
        (said, ledger.deliveries.get(key).copied())
    };
    let pause = match times {
        Some(1) if id.starts_with(STUCK) => 60_000,
        _ if id.starts_with(WILLING) => 200,
        _ => 0,
    };
    tokio::time::sleep(Duration::from_millis(pause)).await;
    said
}
