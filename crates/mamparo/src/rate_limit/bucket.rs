//! One limit's state: the word that it is kept in, and the queue of those that wait for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use mamparo_core::clock;
use tokio::sync::Mutex;

use super::layer::Since;
use super::meter::{Meter, Taken};
use super::state::{Decision, Gcra};

/// One limit: of all calls, or of one key's. On cache lines of its own, since every call writes to it.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Bucket {
    pub(super) meter: Meter,
    /// What those that wait will cost.
    waiting: AtomicU64,
    /// First come, first served: whoever holds it is the next to pass.
    pub(super) turn: Mutex<()>,
    /// Of a limit that replicas share: its key's hash, what is taken and not spent, and this replica's share, which it lets pass alone.
    pub(super) key: [u8; 16],
    prepaid: AtomicU32,
    alone: AtomicU64,
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

    /// Makes a bucket for a key whose limit replicas share: what is owed is known elsewhere.
    pub(super) fn of_shared(key: [u8; 16]) -> Self {
        Self {
            key,
            ..Self::default()
        }
    }

    /// Takes a cost from this replica's share, which was closed up to `began`.
    pub(super) fn take_alone(&self, share: Gcra, began: u64, now: u64, cost: u32) -> Decision {
        let mut full_at = self.alone_full_at();
        loop {
            let decision = share.decide(full_at.max(began), now, cost);
            let Decision::Pass { full_at: after } = decision else {
                return decision;
            };
            match (self.alone).compare_exchange_weak(full_at, after, Relaxed, Relaxed) {
                Ok(_) => return decision,
                Err(other) => full_at = other,
            }
        }
    }

    pub(super) fn alone_full_at(&self) -> u64 {
        self.alone.load(Relaxed)
    }

    /// Spends what was taken before.
    pub(super) fn spend(&self, cost: u32) -> bool {
        let spend = |prepaid: u32| prepaid.checked_sub(cost.max(1));
        (self.prepaid.load(Relaxed) >= cost.max(1))
            && self.prepaid.try_update(Relaxed, Relaxed, spend).is_ok()
    }

    /// Forgets what was taken before, but for so much: it was for others, who went away.
    pub(super) fn keep(&self, at_most: u32) {
        if self.prepaid.load(Relaxed) > at_most {
            self.prepaid.fetch_min(at_most, Relaxed);
        }
    }

    /// Keeps what was taken and is not spent yet.
    pub(super) fn prepay(&self, cost: u32) {
        let prepay = |prepaid: u32| Some(prepaid.saturating_add(cost));
        // It never refuses.
        let (Ok(_) | Err(_)) = self.prepaid.try_update(Relaxed, Relaxed, prepay);
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
