//! How long single calls took, for those cases in which many are in flight.

use std::cell::RefCell;
use std::mem;
use std::time::Duration;

thread_local! {
    static NOTED: RefCell<Vec<Duration>> = const { RefCell::new(Vec::new()) };
}

/// Notes one call.
pub(crate) fn note(took: Duration) {
    NOTED.with_borrow_mut(|noted| noted.push(took));
}

/// The time that 99 in a hundred calls stay below, of those noted since it was last asked for.
pub(crate) fn p99() -> Option<Duration> {
    let mut noted = NOTED.with_borrow_mut(mem::take);
    noted.sort_unstable();
    noted.get(noted.len() * 99 / 100).copied()
}
