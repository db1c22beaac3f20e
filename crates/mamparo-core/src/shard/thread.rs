//! The shard of a thread.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// How many threads have a shard to themselves; more threads share, and stay right.
pub const COUNT: usize = 32;

/// Returns the shard of the running thread, below [`COUNT`]; dealt out in turn.
#[must_use]
#[inline]
pub fn index() -> usize {
    const NOT_YET: usize = usize::MAX;
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static SHARD: Cell<usize> = const { Cell::new(NOT_YET) };
    }
    SHARD.with(|shard| {
        if shard.get() == NOT_YET {
            shard.set(NEXT.fetch_add(1, Relaxed) % COUNT);
        }
        shard.get() % COUNT
    })
}
