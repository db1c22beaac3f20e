//! Who may act.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use mamparo_core::clock::{self, Instant};
use mamparo_core::keyed::Keyed;
use std::sync::Arc;

use super::peer::Peer;
use super::token::Token;

/// As many addresses as are told apart.
const MAX_PEERS: usize = 1024;

/// As many wrong tokens as an address may send at once.
pub(super) const MAX_FAILURES: u32 = 10;

/// How long it takes until one of them is forgotten.
pub(super) const FORGET: Duration = Duration::from_secs(6);

/// Asks for the token.
#[derive(Debug)]
pub(super) struct Guard {
    token: Token,
    peers: Keyed<Arc<Failures>>,
}

/// Why somebody may not act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Denied {
    /// No token was sent, or not as one.
    Missing,
    /// Another one was sent.
    Wrong,
    /// Too many others were sent before.
    TooMany(Duration),
}

/// The wrong tokens that an address has sent.
#[derive(Debug)]
struct Failures(Mutex<Instant>);

impl Guard {
    pub(super) fn new(token: Token) -> Self {
        Self {
            token,
            peers: Keyed::new(MAX_PEERS),
        }
    }

    /// Lets through who has the token.
    pub(super) fn admit(&self, headers: &HeaderMap, peer: Peer) -> Result<(), Denied> {
        let now = clock::now();
        // Whoever guesses learns nothing more, not even by guessing right.
        let failures = self.peers.get(&peer);
        if let Some(wait) = failures.and_then(|failures| failures.wait(now)) {
            return Err(Denied::TooMany(wait));
        }
        let presented = bearer(headers).ok_or(Denied::Missing)?;
        if self.token.is(presented) {
            return Ok(());
        }
        let failures = self.peers.get_or_make(&peer, |displaced| {
            // An address that gives way leaves its failures behind: else many addresses would be free of them.
            let forgotten = displaced.map_or(now, |displaced| *displaced.lock());
            Arc::new(Failures(Mutex::new(forgotten)))
        });
        failures.add(now);
        Err(Denied::Wrong)
    }
}

impl Failures {
    fn lock(&self) -> std::sync::MutexGuard<'_, Instant> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long it takes until another one may be sent; none where it may be now.
    fn wait(&self, now: Instant) -> Option<Duration> {
        let full = FORGET * (MAX_FAILURES - 1);
        let debt = self.lock().saturating_duration_since(now);
        debt.checked_sub(full).filter(|wait| !wait.is_zero())
    }

    fn add(&self, now: Instant) {
        let mut forgotten = self.lock();
        *forgotten = clock::later((*forgotten).max(now), FORGET);
    }
}

/// The token of `Authorization: Bearer TOKEN`; none where there are several such headers.
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let mut all = headers.get_all(AUTHORIZATION).iter();
    let (Some(only), None) = (all.next(), all.next()) else {
        return None;
    };
    let (scheme, token) = only.as_bytes().split_at_checked("Bearer ".len())?;
    (scheme.eq_ignore_ascii_case(b"Bearer ") && !token.is_empty()).then_some(token)
}
