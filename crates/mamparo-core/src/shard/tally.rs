//! Counters that many threads add to.

use super::{Each, Line};
use crate::sync::{AtomicU64, Ordering::Relaxed};

/// As many counters as have room on a [`Line`].
const ON_A_LINE: usize = 16;

type Counters = Line<[AtomicU64; ON_A_LINE]>;

/// A few counters that many threads add to, each in a shard of its own, and few read.
///
/// A sum that is taken while others add may miss their latest additions. Additions are never lost: the next sum has
/// them.
#[derive(Debug)]
pub struct Tally {
    lines: usize,
    shards: Each<Box<[Counters]>>,
}

impl Tally {
    /// Makes so many counters, each at 0.
    #[must_use]
    pub const fn new(counters: usize) -> Self {
        Self {
            lines: counters.div_ceil(ON_A_LINE),
            shards: Each::new(),
        }
    }

    /// Adds one to a counter.
    ///
    /// # Panics
    ///
    /// Panics if there is no such counter.
    #[inline]
    pub fn increment(&self, counter: usize) {
        self.own(counter).fetch_add(1, Relaxed);
    }

    /// Takes one away, perhaps in another shard than it was added to: a shard may wrap, the sum doesn't.
    ///
    /// # Panics
    ///
    /// Panics if there is no such counter.
    #[inline]
    pub fn decrement(&self, counter: usize) {
        self.own(counter).fetch_sub(1, Relaxed);
    }

    /// Adds a counter up over all shards, wrapping around.
    ///
    /// # Panics
    ///
    /// Panics if there is no such counter.
    #[must_use]
    pub fn sum(&self, counter: usize) -> u64 {
        let counts = self.shards.made().map(|shard| at(shard, counter));
        counts
            .map(|count| count.load(Relaxed))
            .fold(0, u64::wrapping_add)
    }

    #[inline]
    fn own(&self, counter: usize) -> &AtomicU64 {
        at(self.shards.own(|| zeros(self.lines)), counter)
    }
}

#[inline]
const fn at(shard: &[Counters], counter: usize) -> &AtomicU64 {
    &shard[counter / ON_A_LINE].0[counter % ON_A_LINE]
}

#[cold]
fn zeros(lines: usize) -> Box<[Counters]> {
    let line = || Line(std::array::from_fn(|_| AtomicU64::new(0)));
    (0..lines).map(|_| line()).collect()
}
