//! How many fallbacks are under way at once.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The places of a layer; only an operation that has failed touches them.
#[derive(Clone, Debug)]
pub(super) struct Places {
    taken: Arc<AtomicU32>,
    most: u32,
}

/// One fallback's place, given back on drop.
pub struct Place {
    taken: Arc<AtomicU32>,
}

impl Places {
    pub(super) fn new(most: u32) -> Self {
        Self {
            taken: Arc::default(),
            most,
        }
    }

    pub(super) fn take(&self) -> Option<Place> {
        let one_more = |taken| (taken < self.most).then(|| taken + 1);
        self.taken.fetch_update(Relaxed, Relaxed, one_more).ok()?;
        Some(Place {
            taken: Arc::clone(&self.taken),
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.taken.fetch_sub(1, Relaxed);
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place").finish_non_exhaustive()
    }
}
