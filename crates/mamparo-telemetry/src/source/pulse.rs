//! Asking again, but not at every call.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use mamparo_core::clock::{self, Instant};

/// How long a layer that found no global provider goes without asking again.
pub const RECHECK: Duration = Duration::from_millis(10);

/// Lets one caller through every [`RECHECK`]; for the others it is a read.
#[derive(Debug)]
pub(crate) struct Pulse {
    since: Instant,
    next: AtomicU64,
}

impl Pulse {
    /// The first to ask is let through.
    pub(crate) fn new() -> Self {
        Self {
            since: clock::now(),
            next: AtomicU64::new(0),
        }
    }

    pub(crate) fn is_due(&self, now: Instant) -> bool {
        let elapsed = now.saturating_duration_since(self.since);
        let at = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let next = self.next.load(Ordering::Relaxed);
        at(elapsed) >= next
            && self
                .next
                .compare_exchange(
                    next,
                    at(elapsed + RECHECK),
                    Ordering::Relaxed,
                    Ordering::Relaxed,
                )
                .is_ok()
    }
}

impl Clone for Pulse {
    fn clone(&self) -> Self {
        Self::new()
    }
}
