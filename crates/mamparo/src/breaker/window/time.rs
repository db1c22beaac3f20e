//! The calls of the last so long.

use std::time::Duration;

use mamparo_core::breaker::Rates;

use super::Bad;
use super::shards::Shards;
use crate::sync::{AtomicU64, Ordering};

/// How many stretches a window has: it slides in steps of one.
const STRETCHES: u64 = 10;

/// How many bits of a cell count; the others tell which stretch is counted. A full count stays full.
const COUNT_BITS: u32 = 28;

const FULL: u64 = (1 << COUNT_BITS) - 1;

/// A ring of stretches of time.
#[derive(Debug)]
pub(in super::super) struct TimeWindow {
    /// The length of a stretch, in nanoseconds.
    stretch: u64,
    /// What went well: a cell a stretch in each shard.
    good: Shards<{ STRETCHES as usize }>,
    /// What did not go well, of that what failed, and what was slow.
    bad: Box<[Ring; 3]>,
}

type Ring = [AtomicU64; STRETCHES as usize];

impl TimeWindow {
    pub(super) fn new(length: Duration, spread: bool) -> Self {
        let nanos = u64::try_from(length.as_nanos()).unwrap_or(u64::MAX);
        let ring = || std::array::from_fn(|_| AtomicU64::new(0));
        Self {
            stretch: (nanos / STRETCHES).max(1),
            good: Shards::new(spread),
            bad: Box::new([ring(), ring(), ring()]),
        }
    }

    #[inline]
    pub(super) fn good(&self, epoch: u64, now: u64) {
        let at = self.at(epoch, now);
        add(self.good.own(), at);
    }

    pub(super) fn bad(&self, epoch: u64, now: u64, bad: Bad) {
        let at = self.at(epoch, now);
        // In this order, so that no reader finds more failures than calls.
        add(&self.bad[0], at);
        if bad.failed {
            add(&self.bad[1], at);
        }
        if bad.slow {
            add(&self.bad[2], at);
        }
    }

    pub(super) fn rates(&self, epoch: u64, now: u64, minimum: u64) -> Rates {
        let at = self.at(epoch, now);
        let [failures, slow, bad] = [1, 2, 0].map(|ring: usize| sum(&self.bad[ring], at));
        let good: u64 = self.good.all().map(|line| sum(line, at)).sum();
        Rates::new(good + bad, failures, slow, minimum)
    }

    /// Returns the stretch of an instant, in nanoseconds. Each epoch's first is a whole window after any earlier one's.
    #[inline]
    fn at(&self, epoch: u64, now: u64) -> u64 {
        epoch * STRETCHES + now / self.stretch
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.good.bytes() + size_of_val(&*self.bad)
    }
}

/// Adds one to the cell of a stretch; a cell that counts a later stretch stays as it is.
#[inline]
fn add(cells: &[AtomicU64], at: u64) {
    let cell = &cells[(at % STRETCHES) as usize];
    let mut seen = cell.load(Ordering::Relaxed);
    loop {
        let next = match seen >> COUNT_BITS {
            counted if counted > at => return,
            counted if counted < at => at << COUNT_BITS | 1,
            _ if seen & FULL == FULL => return,
            _ => seen + 1,
        };
        // The strictest order: of two threads that each add and then add up, one must see both. It costs the same.
        match cell.compare_exchange_weak(seen, next, Ordering::SeqCst, Ordering::Relaxed) {
            Ok(_) => return,
            Err(changed) => seen = changed,
        }
    }
}

/// Adds the cells up that lie within the window that ends with a stretch.
fn sum(cells: &[AtomicU64], at: u64) -> u64 {
    let within = |seen: &u64| {
        let counted = seen >> COUNT_BITS;
        counted <= at && counted + STRETCHES > at
    };
    let cells = cells.iter().take(STRETCHES as usize);
    let seen = cells.map(|cell| cell.load(Ordering::SeqCst));
    seen.filter(within).map(|seen| seen & FULL).sum()
}
