//! One limit's state: the word that it is kept in, and the queue of those that wait for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use mamparo_core::clock;
use tokio::sync::Mutex;

use super::layer::Since;
use super::meter::{Meter, Taken};
use super::state::Gcra;

/// One limit: of all calls, or of one key's. On cache lines of its own, since every call writes to it.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Bucket {
    pub(super) meter: Meter,
    /// What those that wait will cost.
    waiting: AtomicU64,
    /// First come, first served: whoever holds it is the next to pass.
    pub(super) turn: Mutex<()>,
}

impl Bucket {
    /// Makes a bucket for another key, in place of one whose debt must not be forgotten.
    pub(super) fn in_place_of(displaced: Option<&Arc<Self>>) -> Self {
        let debt = displaced.map_or(0, |displaced| displaced.meter.full_at());
        Self {
            meter: Meter::new(debt),
            ..Self::default()
        }
    }

    /// Tells whether somebody waits, whom a newcomer must not overtake.
    #[inline]
    pub(super) fn is_waited_for(&self) -> bool {
        self.waiting.load(Relaxed) > 0
    }

    /// Returns what those that wait will cost.
    pub(super) fn ahead(&self) -> u64 {
        self.waiting.load(Relaxed)
    }
}

/// A place in a bucket's queue, given back on drop.
#[derive(Debug)]
#[must_use]
pub(super) struct Place {
    pub(super) bucket: Arc<Bucket>,
    pub(super) cost: u32,
    /// What those before it will cost, and itself.
    pub(super) total: u64,
}

impl Place {
    pub(super) fn take(bucket: Arc<Bucket>, cost: u32) -> Self {
        let ahead = bucket.waiting.fetch_add(u64::from(cost), Relaxed);
        Self {
            bucket,
            cost,
            total: ahead.saturating_add(u64::from(cost)),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.bucket.waiting.fetch_sub(u64::from(self.cost), Relaxed);
    }
}

/// What a call took that was not sent yet: given back on drop.
#[derive(Debug)]
#[must_use]
pub(super) struct Unsent {
    bucket: Option<Arc<Bucket>>,
    taken: Taken,
    gcra: Gcra,
    since: Since,
}

impl Unsent {
    pub(super) const fn new(bucket: Arc<Bucket>, taken: Taken, gcra: Gcra, since: Since) -> Self {
        Self {
            bucket: Some(bucket),
            taken,
            gcra,
            since,
        }
    }

    /// The call was sent: what it took is spent.
    pub(super) fn sent(mut self) {
        self.bucket = None;
    }
}

impl Drop for Unsent {
    fn drop(&mut self) {
        if let Some(bucket) = self.bucket.take() {
            let now = self.since.nanos(clock::now());
            bucket.meter.undo(self.gcra, now, self.taken);
        }
    }
}
