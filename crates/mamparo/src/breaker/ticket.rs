//! What a call gets from a breaker: its way in, or why not.

use std::time::Duration;

use mamparo_core::breaker::{BreakerDecision, BreakerState};

/// What a call holds that was let through: the epoch in which it was, and as what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticket {
    epoch: u64,
    /// A probe's lease; or one of those below.
    lease: u64,
}

/// A call of the closed state.
const COUNTED: u64 = 0;

/// A call whose result is not looked at.
const UNSEEN: u64 = u64::MAX;

/// A call whose end has been heard.
const SETTLED: u64 = u64::MAX - 1;

/// A call that is not let through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) state: BreakerState,
    /// When to come back, where that is known.
    pub(super) retry_after: Option<Duration>,
}

impl Ticket {
    /// Lets a call through, and counts its end.
    #[inline]
    pub(super) const fn counted(epoch: u64) -> Self {
        Self {
            epoch,
            lease: COUNTED,
        }
    }

    /// Lets a probe through.
    pub(super) const fn probe(epoch: u64, lease: u64) -> Self {
        Self { epoch, lease }
    }

    /// Lets a call through without a look at its end.
    pub(super) const fn unseen() -> Self {
        Self {
            epoch: 0,
            lease: UNSEEN,
        }
    }

    /// Takes what is to be settled, at most once.
    #[inline]
    pub(super) const fn take(&mut self) -> Option<Self> {
        if self.lease == SETTLED {
            return None;
        }
        let taken = *self;
        self.lease = SETTLED;
        Some(taken)
    }

    #[inline]
    pub(super) const fn epoch(self) -> u64 {
        self.epoch
    }

    /// Returns a probe's lease.
    pub(super) const fn lease(self) -> u64 {
        self.lease
    }

    #[inline]
    pub(super) const fn is_counted(self) -> bool {
        self.lease == COUNTED
    }

    pub(super) const fn is_unseen(self) -> bool {
        self.lease == UNSEEN
    }

    /// Returns the state in which the call was let through, and as what.
    #[inline]
    pub(super) const fn says(self) -> (BreakerState, BreakerDecision) {
        if self.is_counted() {
            (BreakerState::Closed, BreakerDecision::Admitted)
        } else if self.is_unseen() {
            (BreakerState::Disabled, BreakerDecision::Admitted)
        } else {
            (BreakerState::HalfOpen, BreakerDecision::Probe)
        }
    }

    pub(super) const fn is_probe(self) -> bool {
        !self.is_counted() && !self.is_unseen()
    }
}
