use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// How many threads count without sharing a cache line; more threads share, and stay right.
const SHARDS: usize = 32;

/// The words of 128 bytes: the cache line of some processors, and the pair that the others fetch at once.
const LINE: usize = 16;

/// A few counters that many threads add to, each in a shard of its own, and few read.
///
/// A sum that is taken while others add may miss their latest additions. Additions are never lost: the next sum has
/// them.
#[derive(Debug)]
pub(super) struct Tally {
    cells: Box<[AtomicU64]>,
    stride: usize,
}

impl Tally {
    pub(super) fn new(counters: usize) -> Self {
        let stride = counters.max(LINE);
        Self {
            cells: (0..SHARDS * stride).map(|_| AtomicU64::new(0)).collect(),
            stride,
        }
    }

    #[inline]
    pub(super) fn increment(&self, counter: usize) {
        self.cells[shard() * self.stride + counter].fetch_add(1, Relaxed);
    }

    /// Takes one away, perhaps in another shard than it was added to: a shard may wrap, the sum doesn't.
    #[inline]
    pub(super) fn decrement(&self, counter: usize) {
        self.cells[shard() * self.stride + counter].fetch_sub(1, Relaxed);
    }

    pub(super) fn sum(&self, counter: usize) -> u64 {
        self.cells
            .chunks_exact(self.stride)
            .map(|shard| shard[counter].load(Relaxed))
            .fold(0, u64::wrapping_add)
    }
}

/// The shard of the running thread, the same for every tally; dealt out in turn.
#[inline]
fn shard() -> usize {
    const NOT_YET: usize = usize::MAX;
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static SHARD: Cell<usize> = const { Cell::new(NOT_YET) };
    }
    SHARD.with(|shard| {
        if shard.get() == NOT_YET {
            shard.set(NEXT.fetch_add(1, Relaxed) % SHARDS);
        }
        shard.get()
    })
}
