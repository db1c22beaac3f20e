//! A few counts for each thread, apart from those of the others.

use crate::sync::{AtomicU64, shard};

/// The words of 128 bytes: the cache line of some processors, and the pair that the others fetch at once.
const LINE: usize = 16;

/// Counts for each shard, on cache lines of its own; or one set for all of them, where memory counts for more.
#[derive(Debug)]
pub(super) struct Shards {
    cells: Box<[AtomicU64]>,
    stride: usize,
}

impl Shards {
    /// Makes so many counts, `spread` over all shards.
    pub(super) fn new(counts: usize, spread: bool) -> Self {
        let stride = if spread { counts.max(LINE) } else { counts };
        let cells = if spread {
            shard::COUNT * stride
        } else {
            stride
        };
        Self {
            cells: (0..cells).map(|_| AtomicU64::new(0)).collect(),
            stride,
        }
    }

    /// Returns the running thread's counts.
    #[inline]
    pub(super) fn own(&self) -> &[AtomicU64] {
        if self.cells.len() == self.stride {
            return &self.cells;
        }
        let start = shard::index() * self.stride;
        &self.cells[start..start + self.stride]
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &[AtomicU64]> {
        self.cells.chunks_exact(self.stride)
    }

    /// Returns how many bytes it takes beside itself.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.cells)
    }
}
