//! The dependencies: plain servers, most with a trouble of their own.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderName, Response, StatusCode};
use http_body_util::Full;
use mamparo_core::clock::{self, Instant};

use crate::demo::peer::{Peer, Reply};

/// The shop numbers its operations, so that a server knows an attempt by its operation.
pub(super) const OPERATION: HeaderName = HeaderName::from_static("x-operation");

const MS: Duration = Duration::from_millis(1);

/// Whether the dependencies are in trouble.
#[derive(Clone, Debug, Default)]
pub(super) struct Trouble(Arc<AtomicBool>);

/// One send, as a dependency sees it.
pub(super) struct Arrival {
    /// How many operations there were.
    operation: u64,
    /// Whether this one was sent before.
    again: bool,
    /// Since the server began.
    at: Duration,
    ill: bool,
}

/// What a dependency does with a send.
pub(super) type Behaviour = fn(&Arrival) -> Reply;

impl Trouble {
    pub(super) fn begin(&self) {
        self.0.store(true, Relaxed);
    }

    pub(super) fn is_here(&self) -> bool {
        self.0.load(Relaxed)
    }
}

impl Arrival {
    /// Tells whether it is the first attempt of one operation in so many.
    const fn is_first_of(&self, every: u64) -> bool {
        !self.again && self.operation.is_multiple_of(every)
    }
}

/// What each dependency does, by its name.
pub(super) const CAST: &[(&str, Behaviour)] = &[
    // As well as things are.
    ("catalog", mostly_well),
    // Well too, and three times as much in demand once the others are ill.
    ("news", mostly_well),
    ("psp", |it| match it.ill && !it.again {
        true => fails(),
        false => mostly_well(it),
    }),
    // What was saved by sending it again no longer is.
    ("search", |it| {
        answers_if(!(it.is_first_of(10) || it.ill && it.again))
    }),
    ("ledger", |it| match it.ill && it.is_first_of(2) {
        true => fails(),
        false => mostly_well(it),
    }),
    // Down for less than half of each second.
    ("stock", |it| {
        answers_if(!it.ill || it.at.subsec_millis() >= 400)
    }),
    // One in ten takes long, and all succeed.
    ("images", |it| match it.ill && it.is_first_of(10) {
        true => late(600 * MS),
        false => answers_if(true),
    }),
    // Its shop gives it 20 ms.
    ("reports", |it| match it.ill && it.is_first_of(5) {
        true => late(200 * MS),
        false => answers_if(true),
    }),
    ("quotes", |it| match () {
        () if it.is_first_of(25) => Reply::Answer(empty(StatusCode::NOT_IMPLEMENTED)),
        () if it.is_first_of(10) => late(100 * MS),
        () => answers_if(true),
    }),
];

/// Starts the server of a dependency.
pub(super) async fn start(behaviour: Behaviour, trouble: &Trouble) -> io::Result<Peer> {
    let (trouble, seen, began) = (trouble.clone(), Seen::default(), clock::now());
    Peer::start(move |head| behaviour(&seen.arrival(head, began, &trouble))).await
}

/// How many operations a server has seen, and the newest of them.
#[derive(Debug, Default)]
struct Seen {
    operations: AtomicU64,
    newest: Mutex<Option<Bytes>>,
}

impl Seen {
    fn arrival(&self, head: &Parts, began: Instant, trouble: &Trouble) -> Arrival {
        let number = head.headers.get(OPERATION);
        let number = number.map(|number| Bytes::copy_from_slice(number.as_bytes()));
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        let again = *newest == number;
        *newest = number;
        drop(newest);
        Arrival {
            operation: self.operations.fetch_add(u64::from(!again), Relaxed) + u64::from(!again),
            again,
            at: began.elapsed(),
            ill: trouble.is_here(),
        }
    }
}

fn mostly_well(it: &Arrival) -> Reply {
    answers_if(!it.is_first_of(20))
}

fn answers_if(well: bool) -> Reply {
    match well {
        true => Reply::Answer(empty(StatusCode::OK)),
        false => fails(),
    }
}

fn fails() -> Reply {
    Reply::Answer(empty(StatusCode::SERVICE_UNAVAILABLE))
}

fn late(by: Duration) -> Reply {
    Reply::Late(by, empty(StatusCode::OK))
}

fn empty(status: StatusCode) -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::default());
    *answer.status_mut() = status;
    answer
}
