//! What servers saw, noted as it happens: the proofs are read from here.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::HeaderMap;
use mamparo_core::clock::{self, Instant};
use mamparo_core::grpc::{GRPC_PREVIOUS_RPC_ATTEMPTS, GRPC_TIMEOUT};
use mamparo_core::http::IDEMPOTENCY_KEY;
use tonic::metadata::MetadataMap;

/// The header in which the layers send the remaining time.
const REMAINING: &str = "x-request-timeout-ms";

/// The route whose handler blocks.
pub(super) const BLOCKING: &str = "/blocking";

/// The route that asks what an item costs.
pub(super) const QUOTES: &str = "/quotes/{item}";

/// The notes of all servers; a clone writes into the same.
#[derive(Clone, Debug, Default)]
pub(super) struct Notes(Arc<Mutex<Noted>>);

/// What was noted.
#[derive(Clone, Debug, Default)]
pub(super) struct Noted {
    /// By path, of every dependency.
    pub(super) requests: HashMap<String, u32>,
    /// By idempotency key.
    pub(super) charges: HashMap<String, Charge>,
    /// How much time the shop was given for an order, by its key.
    pub(super) given: HashMap<String, Duration>,
    /// How much time the shop was given for a quote.
    pub(super) quoted: Duration,
    /// Each time that a price was asked for.
    pub(super) priced: Vec<Priced>,
    /// How many prices were told to who watches, and when that ended.
    pub(super) ticks: u32,
    pub(super) unwatched: Option<Instant>,
    /// When the handler that never answers stopped.
    pub(super) stopped: Option<Instant>,
    /// The shop's routes that have answered.
    pub(super) answered: HashSet<String>,
}

/// What the payment provider saw of one key.
#[derive(Clone, Debug, Default)]
pub(super) struct Charge {
    pub(super) requests: u32,
    pub(super) effects: u32,
    /// The most time that any of its requests was given.
    pub(super) given: Duration,
}

/// What the price service saw of one attempt.
#[derive(Clone, Debug)]
pub(super) struct Priced {
    pub(super) at: Instant,
    /// What the time that it was given is written as, and how many attempts it was told came before.
    pub(super) timeout: String,
    pub(super) previous: String,
}

impl Noted {
    /// Tells whether the handlers are over that nobody waits for any more.
    pub(super) fn is_over(&self) -> bool {
        self.stopped.is_some() && self.unwatched.is_some() && self.answered.contains(BLOCKING)
    }
}

impl Notes {
    /// Returns all that was noted so far.
    pub(super) fn noted(&self) -> Noted {
        self.with(|noted| noted.clone())
    }

    /// Counts a request to a path, and returns how many there were before.
    pub(super) fn request(&self, path: &str) -> u32 {
        self.with(|noted| {
            let count = noted.requests.entry(path.to_owned()).or_default();
            *count += 1;
            *count - 1
        })
    }

    /// Takes a charge: its effect happens once for each key. Returns how many requests came before.
    pub(super) fn charge(&self, headers: &HeaderMap) -> u32 {
        self.with(|noted| {
            let charge = noted
                .charges
                .entry(text(headers, IDEMPOTENCY_KEY.as_str()))
                .or_default();
            charge.requests += 1;
            charge.effects = charge.effects.max(1);
            charge.given = charge.given.max(remaining(headers));
            charge.requests - 1
        })
    }

    /// Notes how much time an order was given.
    pub(super) fn order(&self, headers: &HeaderMap) {
        let (key, given) = (text(headers, IDEMPOTENCY_KEY.as_str()), remaining(headers));
        if !key.is_empty() {
            self.with(|noted| noted.given.insert(key, given));
        }
    }

    /// Notes how much time a quote was given.
    pub(super) fn quote(&self, headers: &HeaderMap) {
        let given = remaining(headers);
        self.with(|noted| noted.quoted = given);
    }

    /// Notes that a price was asked for. Returns how often it was before.
    pub(super) fn priced(&self, metadata: &MetadataMap) -> usize {
        let headers = metadata.as_ref();
        self.with(|noted| {
            noted.priced.push(Priced {
                at: clock::now(),
                timeout: text(headers, GRPC_TIMEOUT.as_str()),
                previous: text(headers, GRPC_PREVIOUS_RPC_ATTEMPTS.as_str()),
            });
            noted.priced.len() - 1
        })
    }

    /// Notes that a price is told to who watches.
    pub(super) fn ticked(&self) {
        self.with(|noted| noted.ticks += 1);
    }

    /// Notes that nobody watches any more.
    pub(super) fn unwatched(&self) {
        self.with(|noted| noted.unwatched = Some(clock::now()));
    }

    /// Notes that a route of the shop has answered, even if nobody waited for it.
    pub(super) fn answered(&self, route: &str) {
        self.with(|noted| noted.answered.insert(route.to_owned()));
    }

    /// Notes that the handler that never answers has stopped.
    pub(super) fn stopped(&self) {
        self.with(|noted| noted.stopped = Some(clock::now()));
    }

    fn with<R>(&self, f: impl FnOnce(&mut Noted) -> R) -> R {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn text(headers: &HeaderMap, name: &str) -> String {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or_default().to_owned()
}

fn remaining(headers: &HeaderMap) -> Duration {
    let millis = text(headers, REMAINING).parse();
    Duration::from_millis(millis.unwrap_or_default())
}
