//! Failures in a row.

use crate::sync::{AtomicU64, Ordering};

/// How many bits count; the others are the epoch to which the count belongs.
const BITS: u32 = 32;

const MASK: u64 = (1 << BITS) - 1;

/// How many calls have failed since the last that did not, in one epoch of a breaker.
#[derive(Debug)]
pub(super) struct Streak(AtomicU64);

impl Streak {
    pub(super) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// A call did not fail. Where none had failed, which is nearly always, nothing is written.
    #[inline]
    pub(super) fn end(&self, epoch: u64) {
        let seen = self.0.load(Ordering::Relaxed);
        if seen & MASK != 0 && belongs(seen, epoch) {
            self.clear(seen);
        }
    }

    #[cold]
    fn clear(&self, seen: u64) {
        let cleared = seen & !MASK;
        let order = Ordering::Relaxed;
        match self.0.compare_exchange(seen, cleared, order, order) {
            // Whoever changed it meanwhile came after this call's end.
            Ok(_) | Err(_) => {}
        }
    }

    /// A call failed; returns how many have by now. A result from an earlier epoch leaves a later count alone.
    pub(super) fn extend(&self, epoch: u64) -> u32 {
        let mut seen = self.0.load(Ordering::Relaxed);
        loop {
            let next = if belongs(seen, epoch) {
                if seen & MASK == MASK { seen } else { seen + 1 }
            } else if seen >> BITS > epoch & MASK {
                return 0;
            } else {
                epoch << BITS | 1
            };
            match self
                .0
                .compare_exchange_weak(seen, next, Ordering::SeqCst, Ordering::Relaxed)
            {
                Ok(_) => return length(next),
                Err(changed) => seen = changed,
            }
        }
    }

    pub(super) fn length(&self, epoch: u64) -> u32 {
        let seen = self.0.load(Ordering::Relaxed);
        if belongs(seen, epoch) {
            length(seen)
        } else {
            0
        }
    }
}

const fn belongs(seen: u64, epoch: u64) -> bool {
    seen >> BITS == epoch & MASK
}

const fn length(seen: u64) -> u32 {
    (seen & MASK) as u32
}
