//! Counters that many threads add to.

use super::{COUNT, index};
use crate::sync::{AtomicU64, Ordering::Relaxed};

/// The words of 128 bytes: the cache line of some processors, and the pair that the others fetch at once.
const LINE: usize = 16;

/// A few counters that many threads add to, each in a shard of its own, and few read.
///
/// A sum that is taken while others add may miss their latest additions. Additions are never lost: the next sum has
/// them.
#[derive(Debug)]
pub struct Tally {
    cells: Box<[AtomicU64]>,
    stride: usize,
}

impl Tally {
    /// Makes so many counters, each at 0.
    #[must_use]
    pub fn new(counters: usize) -> Self {
        let stride = counters.max(LINE);
        Self {
            cells: (0..COUNT * stride).map(|_| AtomicU64::new(0)).collect(),
            stride,
        }
    }

    /// Adds one to a counter.
    ///
    /// # Panics
    ///
    /// Panics if there is no such counter.
    #[inline]
    pub fn increment(&self, counter: usize) {
        self.cells[index() * self.stride + counter].fetch_add(1, Relaxed);
    }

    /// Takes one away, perhaps in another shard than it was added to: a shard may wrap, the sum doesn't.
    ///
    /// # Panics
    ///
    /// Panics if there is no such counter.
    #[inline]
    pub fn decrement(&self, counter: usize) {
        self.cells[index() * self.stride + counter].fetch_sub(1, Relaxed);
    }

    /// Adds a counter up over all shards, wrapping around.
    ///
    /// # Panics
    ///
    /// Panics if there is no such counter.
    #[must_use]
    pub fn sum(&self, counter: usize) -> u64 {
        self.cells
            .chunks_exact(self.stride)
            .map(|shard| shard[counter].load(Relaxed))
            .fold(0, u64::wrapping_add)
    }
}
