//! The word that a limit is kept in.

use super::state::{Decision, Gcra};
use crate::sync::{AtomicU64, Ordering::Relaxed};

/// When the whole burst will be there again, in nanoseconds since the layer was made.
///
/// The word stands alone and guards nothing else, so that its order among other writes does not matter.
#[derive(Debug, Default)]
pub(super) struct Meter(AtomicU64);

impl Meter {
    pub(super) const fn new(full_at: u64) -> Self {
        Self(AtomicU64::new(full_at))
    }

    #[inline]
    pub(super) fn full_at(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// Takes what a call costs, if it may pass now.
    #[inline]
    pub(super) fn take(&self, gcra: Gcra, now: u64, cost: u32) -> Result<Taken, Decision> {
        let mut before = self.full_at();
        loop {
            let after = match gcra.decide(before, now, cost) {
                Decision::Pass { full_at } => full_at,
                refused => return Err(refused),
            };
            match self.replace(before, after) {
                Ok(_) => return Ok(Taken { before, after }),
                Err(other) => before = other,
            }
        }
    }

    /// Undoes a taking, if nobody has taken anything since; else it stays taken.
    ///
    /// Taking it off the later ones would be wrong: they may have found the burst whole in the meantime.
    pub(super) fn undo(&self, Taken { before, after }: Taken) {
        while self.full_at() == after && self.replace(after, before).is_err() {}
    }

    /// Lets nothing pass for so long.
    pub(super) fn close(&self, gcra: Gcra, now: u64, wait: u64) {
        self.0.fetch_max(gcra.closed(now, wait), Relaxed);
    }

    #[inline]
    fn replace(&self, old: u64, new: u64) -> Result<u64, u64> {
        self.0.compare_exchange_weak(old, new, Relaxed, Relaxed)
    }
}

/// What a call took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(super) struct Taken {
    before: u64,
    after: u64,
}
