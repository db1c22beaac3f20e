//! What an operator reads of a breaker, and does with it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use mamparo_core::breaker::{BreakerCause, BreakerState, Rates};
use mamparo_core::clock;

use super::Transitions;
use super::circuit::Circuit;
use super::circuits::Circuits;
use super::state::Readings;

/// Reads a breaker, follows its changes, and forces it; clones are of the same breaker.
///
/// ```
/// use mamparo::breaker::{BreakerLayer, BreakerPolicy};
/// use mamparo_core::breaker::BreakerState;
/// use mamparo_core::Plain;
///
/// let layer = BreakerLayer::new(BreakerPolicy::default(), Plain::idempotent());
/// let handle = layer.handle();
/// assert_eq!(handle.state(), BreakerState::Closed);
/// handle.force_open();
/// assert_eq!(handle.state(), BreakerState::ForcedOpen);
/// handle.reset();
/// assert_eq!(handle.state(), BreakerState::Closed);
/// ```
#[derive(Clone)]
pub struct BreakerHandle {
    circuits: Circuits,
    keyed: Option<Arc<Circuit>>,
}

/// A breaker as it was when it was read.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Snapshot {
    /// The state. An open breaker whose wait is over is half-open only once a call has come.
    pub state: BreakerState,
    /// Why it is in that state; none while it never changed.
    pub cause: Option<BreakerCause>,
    /// For how long it has been in that state.
    pub lasts: Duration,
    /// What the window holds; while not closed, what it held when the breaker opened. Below the minimum, the rules on
    /// rates are inert.
    pub rates: Rates,
    /// How many calls have failed in a row.
    pub consecutive_failures: u32,
    /// How often it has opened since it was last closed for good.
    pub openings: u32,
    /// How many probes are under way.
    pub probes: usize,
    /// The share of calls that is admitted when closed: below 1 while admission grows.
    pub admitted: f64,
    /// When to ask again: how long it stays open; half-open, a second while all probes are under way.
    pub retry_after: Option<Duration>,
    /// How many results came too late to count: after the state had changed.
    pub late: u64,
    /// How many results said nothing of the dependency.
    pub ignored: u64,
    /// How many calls were dropped by whoever made them.
    pub cancelled: u64,
}

impl BreakerHandle {
    pub(super) const fn new(circuits: Circuits) -> Self {
        Self {
            circuits,
            keyed: None,
        }
    }

    /// Returns the handle of a key's breaker, if that key has one.
    #[must_use]
    pub fn of(&self, key: &str) -> Option<Self> {
        let keyed = self.circuits.keys()?.find(key)?;
        Some(Self {
            circuits: self.circuits.clone(),
            keyed: Some(keyed),
        })
    }

    /// Returns the keys that have a breaker of their own.
    #[must_use]
    pub fn keys(&self) -> Vec<Arc<str>> {
        self.circuits
            .keys()
            .map(super::keys::Keys::all)
            .unwrap_or_default()
    }

    /// Returns how many keys have a breaker of their own.
    #[must_use]
    pub fn key_count(&self) -> usize {
        self.circuits
            .keys()
            .map(super::keys::Keys::len)
            .unwrap_or_default()
    }

    /// Returns the state.
    #[must_use]
    pub fn state(&self) -> BreakerState {
        self.snapshot().state
    }

    /// Reads all that there is to read.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let Readings {
            state,
            cause,
            lasts,
            rates,
            consecutive,
            openings,
            probes,
            admitted,
            retry_after,
            late,
            ignored,
            cancelled,
        } = self.circuit().read(clock::now());
        Snapshot {
            state,
            cause,
            lasts,
            rates,
            consecutive_failures: consecutive,
            openings,
            probes,
            admitted,
            retry_after,
            late,
            ignored,
            cancelled,
        }
    }

    /// Subscribes to all changes of state from now on, of every key, each once and in order.
    #[must_use]
    pub fn transitions(&self) -> Transitions {
        Transitions::new(Arc::clone(self.circuits.journal()))
    }

    /// Tells whether these are this breaker's changes.
    #[cfg(feature = "admin")]
    pub(crate) fn is_followed_by(&self, transitions: &Transitions) -> bool {
        Arc::ptr_eq(self.circuits.journal(), &transitions.journal)
    }

    /// Rejects all calls until [`BreakerHandle::reset`] or [`BreakerHandle::disable`].
    pub fn force_open(&self) {
        self.circuit().force(BreakerState::ForcedOpen, clock::now());
    }

    /// Lets all calls pass and counts none, until [`BreakerHandle::reset`] or [`BreakerHandle::force_open`].
    pub fn disable(&self) {
        self.circuit().force(BreakerState::Disabled, clock::now());
    }

    /// Closes it at once and forgets all that was counted.
    pub fn reset(&self) {
        self.circuit().force(BreakerState::Closed, clock::now());
    }

    fn circuit(&self) -> &Circuit {
        self.keyed
            .as_deref()
            .unwrap_or_else(|| self.circuits.whole())
    }
}

impl fmt::Debug for BreakerHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BreakerHandle")
            .field(
                "key",
                &self.keyed.as_ref().and_then(|circuit| circuit.key()),
            )
            .field("snapshot", &self.snapshot())
            .finish_non_exhaustive()
    }
}
