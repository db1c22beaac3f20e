//! One limit's state: a word, and a queue for those that wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tokio::sync::Mutex;

use super::state::{Decision, Gcra};

/// The word that a limit's state is kept in; a test puts another one here, under which threads take every turn.
pub(super) trait Word {
    fn get(&self) -> u64;
    fn replace(&self, old: u64, new: u64) -> Result<(), u64>;
    fn raise(&self, least: u64);
}

impl Word for AtomicU64 {
    #[inline]
    fn get(&self) -> u64 {
        self.load(Relaxed)
    }

    #[inline]
    fn replace(&self, old: u64, new: u64) -> Result<(), u64> {
        let replaced = self.compare_exchange_weak(old, new, Relaxed, Relaxed);
        replaced.map(|_| ())
    }

    fn raise(&self, least: u64) {
        self.fetch_max(least, Relaxed);
    }
}

/// When the whole burst will be there again, in nanoseconds since the layer was made.
///
/// It stands alone and guards nothing else, so that its order among other writes does not matter.
#[derive(Debug, Default)]
pub(super) struct Meter<W>(W);

impl<W: Word> Meter<W> {
    pub(super) const fn new(full_at: W) -> Self {
        Self(full_at)
    }

    #[inline]
    pub(super) fn full_at(&self) -> u64 {
        self.0.get()
    }

    /// Takes what a call costs, if it may pass now; returns the word before and after.
    #[inline]
    pub(super) fn take(&self, gcra: Gcra, now: u64, cost: u32) -> Result<Taken, Decision> {
        let mut before = self.0.get();
        loop {
            let after = match gcra.decide(before, now, cost) {
                Decision::Pass { full_at } => full_at,
                refused => return Err(refused),
            };
            match self.0.replace(before, after) {
                Ok(()) => return Ok(Taken { before, after }),
                Err(other) => before = other,
            }
        }
    }

    /// Undoes a taking, if nobody has taken anything since; else it stays taken.
    ///
    /// Taking it off the later ones would be wrong: they may have found the burst whole in the meantime.
    pub(super) fn undo(&self, taken: Taken) {
        while self.0.get() == taken.after && self.0.replace(taken.after, taken.before).is_err() {}
    }

    /// Lets nothing pass for so long.
    pub(super) fn close(&self, gcra: Gcra, now: u64, wait: u64) {
        self.0.raise(gcra.closed(now, wait));
    }
}

/// What a call took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(super) struct Taken {
    before: u64,
    after: u64,
}

/// One limit: of all calls, or of one key's. On cache lines of its own, since every call writes to it.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Bucket {
    pub(super) meter: Meter<AtomicU64>,
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
            meter: Meter::new(AtomicU64::new(debt)),
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
}

impl Unsent {
    pub(super) const fn new(bucket: Arc<Bucket>, taken: Taken) -> Self {
        Self {
            bucket: Some(bucket),
            taken,
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
            bucket.meter.undo(self.taken);
        }
    }
}
