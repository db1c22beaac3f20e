//! The state and its epoch in one word, for all threads to read at once.

use mamparo_core::breaker::BreakerState;

use super::state::Control;
use crate::sync::{AtomicU64, Ordering};

/// How many bits tell the state; the others are the epoch.
const BITS: u32 = 3;

const MASK: u64 = (1 << BITS) - 1;

const CLOSED: u64 = 0;
const RAMPING: u64 = 1;
const DISABLED: u64 = 2;
const OPEN: u64 = 3;
const FORCED_OPEN: u64 = 4;
const HALF_OPEN: u64 = 5;

/// A breaker's state as all threads see it: written under the lock, read without.
#[derive(Debug)]
pub(super) struct Phase(AtomicU64);

impl Phase {
    pub(super) fn new(epoch: u64) -> Self {
        Self(AtomicU64::new(epoch << BITS | CLOSED))
    }

    /// Shows the state as it is now; the lock is held.
    pub(super) fn set(&self, control: &Control) {
        let state = match control.state() {
            BreakerState::Closed if control.ramp_since().is_some() => RAMPING,
            BreakerState::Closed => CLOSED,
            BreakerState::Disabled => DISABLED,
            BreakerState::Open => OPEN,
            BreakerState::ForcedOpen => FORCED_OPEN,
            BreakerState::HalfOpen => HALF_OPEN,
        };
        self.0
            .store(control.epoch() << BITS | state, Ordering::Release);
    }

    #[inline]
    fn load(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    /// Returns the epoch, if all calls pass.
    #[inline]
    pub(super) fn closed_epoch(&self) -> Option<u64> {
        let word = self.load();
        (word & MASK == CLOSED).then_some(word >> BITS)
    }

    /// Returns the epoch, if more and more calls pass.
    pub(super) fn ramping_epoch(&self) -> Option<u64> {
        let word = self.load();
        (word & MASK == RAMPING).then_some(word >> BITS)
    }

    #[inline]
    pub(super) fn is_epoch(&self, epoch: u64) -> bool {
        self.load() >> BITS == epoch
    }

    /// Tells whether hardly any call passes: none, or probes.
    #[inline]
    pub(super) fn refuses(&self) -> bool {
        self.load() & MASK >= OPEN
    }

    pub(super) fn is_disabled(&self) -> bool {
        self.load() & MASK == DISABLED
    }

    pub(super) fn probes(&self) -> bool {
        self.load() & MASK == HALF_OPEN
    }
}
