//! The word that a limit is kept in.

use super::state::{Decision, Gcra};
use crate::sync::AtomicU64;
use crate::sync::Ordering::{Acquire, Relaxed, Release};

/// When the whole burst will be there again, in nanoseconds since the layer was made.
///
/// The other words are written only when a taking is undone, or the limit closed.
#[derive(Debug, Default)]
pub(super) struct Meter {
    full_at: AtomicU64,
    /// What was given back so far, in nanoseconds of the rate: noted after that, and before.
    returned: AtomicU64,
    returning: AtomicU64,
    /// No undoing makes the burst whole before that: the limit was closed until then.
    closed: AtomicU64,
}

impl Meter {
    pub(super) const fn new(full_at: u64) -> Self {
        Self {
            full_at: AtomicU64::new(full_at),
            returned: AtomicU64::new(0),
            returning: AtomicU64::new(0),
            closed: AtomicU64::new(full_at),
        }
    }

    #[inline]
    pub(super) fn full_at(&self) -> u64 {
        self.full_at.load(Relaxed)
    }

    /// Takes what a call costs, if it may pass now.
    #[inline]
    pub(super) fn take(&self, gcra: Gcra, now: u64, cost: u32) -> Result<Taken, Decision> {
        let returned = self.returned.load(Acquire);
        let mut before = self.full_at();
        loop {
            let after = match gcra.decide(before, now, cost) {
                Decision::Pass { full_at } => full_at,
                refused => return Err(refused),
            };
            match self.replace(before, after) {
                Ok(_) => {
                    return Ok(Taken {
                        cost,
                        after,
                        returned,
                    });
                }
                Err(other) => before = other,
            }
        }
    }

    /// Undoes a taking, as far as time has not done so.
    ///
    /// Time pays off debt only, and without this taking there might have been none for a while. How long, nobody noted; but
    /// the debt since then was at least what it was after the taking, less the time that has passed and what others gave
    /// back. What is left of that comes off, and no more than the taking cost.
    pub(super) fn undo(&self, gcra: Gcra, now: u64, taken: Taken) {
        let mut full_at = self.full_at.load(Acquire);
        loop {
            // What others are about to give back counts too, and what they gave back before it was taken does no harm.
            let others = self.returning.load(Relaxed).saturating_sub(taken.returned);
            let left = taken.after.saturating_sub(others).saturating_sub(now);
            let less = full_at.saturating_sub(left.min(gcra.charge(taken.cost)));
            let less = less.max(self.closed.load(Relaxed));
            let back = full_at.saturating_sub(less);
            if back == 0 {
                return;
            }
            // What was taken last lowers no debt that others reckon with, so that they need not hear of it.
            let last = others == 0 && full_at == taken.after;
            let heard = if last { 0 } else { back };
            self.returning.fetch_add(heard, Relaxed);
            match (self.full_at).compare_exchange(full_at, less, Release, Acquire) {
                Ok(_) => {
                    self.returned.fetch_add(heard, Release);
                    return;
                }
                Err(other) => {
                    self.returning.fetch_sub(heard, Relaxed);
                    full_at = other;
                }
            }
        }
    }

    /// Lets nothing pass for so long.
    pub(super) fn close(&self, gcra: Gcra, now: u64, wait: u64) {
        let closed = gcra.closed(now, wait);
        self.closed.fetch_max(closed, Relaxed);
        self.full_at.fetch_max(closed, Relaxed);
    }

    /// Notes what was taken from the same limit elsewhere.
    pub(super) fn learn(&self, full_at: u64) {
        self.full_at.fetch_max(full_at, Relaxed);
    }

    /// Goes on at another rate: as many tokens are owed as before, unless the limit was closed until then.
    pub(super) fn convert(&self, from: Gcra, to: Gcra, now: u64) {
        let mut before = self.full_at();
        loop {
            let owed = to.converted(from, before.saturating_sub(now));
            let after = now.saturating_add(owed).max(self.closed.load(Relaxed));
            if before <= now || after == before {
                return;
            }
            match self.replace(before, after) {
                Ok(_) => return,
                Err(other) => before = other,
            }
        }
    }

    #[inline]
    fn replace(&self, old: u64, new: u64) -> Result<u64, u64> {
        self.full_at
            .compare_exchange_weak(old, new, Relaxed, Relaxed)
    }
}

/// What a call took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(super) struct Taken {
    cost: u32,
    /// When the whole burst would have been there again after it.
    after: u64,
    /// What had been given back before it.
    returned: u64,
}
