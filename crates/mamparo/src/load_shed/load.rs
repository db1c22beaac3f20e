//! What is known of the load: words that every call reads, and some write.

use mamparo_core::clock::Instant;

use super::config::{LoadShedBuilder, QueueTime, Throttle};
use super::state::{allowed, drains_no_more, rejection, waited_too_long};
use crate::sync::{AtomicU64, Ordering::Relaxed};

/// Into how many parts a throttle's window is divided.
const SLOTS: usize = 10;

/// No call came yet.
const NONE: u64 = u64::MAX;

/// The calls that are under way; on cache lines of its own, since each call writes to it twice.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct InFlight(AtomicU64);

impl InFlight {
    /// Counts a call in, unless there are `allowed` already.
    #[inline]
    pub(super) fn enter(&self, limit: usize, share: f64) -> bool {
        let allowed = allowed(limit, share);
        let mut running = self.0.load(Relaxed);
        while running < allowed {
            match self
                .0
                .compare_exchange_weak(running, running + 1, Relaxed, Relaxed)
            {
                Ok(_) => return true,
                Err(other) => running = other,
            }
        }
        false
    }

    #[inline]
    pub(super) fn leave(&self) {
        self.0.fetch_sub(1, Relaxed);
    }

    pub(super) fn running(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// How long calls wait: written once an interval, and when a wait is the shortest of its interval.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct Waits {
    /// When the current interval ends, in nanoseconds.
    until: AtomicU64,
    shortest: AtomicU64,
    overloaded: AtomicU64,
}

impl Default for Waits {
    fn default() -> Self {
        Self {
            until: AtomicU64::new(0),
            shortest: AtomicU64::new(NONE),
            overloaded: AtomicU64::new(0),
        }
    }
}

impl Waits {
    /// Notes how long a call waited, and tells whether it is shed for that.
    #[inline]
    pub(super) fn sheds(&self, rule: QueueTime, now: u64, waited: u64, share: f64) -> bool {
        let until = self.until.load(Relaxed);
        if now >= until {
            self.turn(rule, until, now, waited);
        } else if waited < self.shortest.load(Relaxed) {
            self.shortest.fetch_min(waited, Relaxed);
        }
        self.is_overloaded() && waited_too_long(waited, nanos(rule.target), share)
    }

    pub(super) fn is_overloaded(&self) -> bool {
        self.overloaded.load(Relaxed) != 0
    }

    /// An interval is over: whoever comes first says how it was, and begins the next.
    #[cold]
    fn turn(&self, rule: QueueTime, ended: u64, now: u64, waited: u64) {
        let interval = nanos(rule.interval);
        let next = now.saturating_add(interval);
        if self
            .until
            .compare_exchange(ended, next, Relaxed, Relaxed)
            .is_ok()
        {
            let shortest = self.shortest.swap(waited, Relaxed);
            let shortest = (shortest != NONE).then_some(shortest);
            let overloaded = drains_no_more(ended, now, interval, shortest, nanos(rule.target));
            self.overloaded.store(u64::from(overloaded), Relaxed);
        }
    }
}

/// What became of the calls of the last while; a call reads one word, and writes two when it is over.
///
/// A word holds the calls in its upper half, and in its lower those of them that were accepted.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Answers {
    /// At least what is in the slots together: it is added to before them, and taken from after them.
    total: AtomicU64,
    slots: [AtomicU64; SLOTS],
    /// The number of the current slot, counted from the start.
    tick: AtomicU64,
}

impl Answers {
    /// Returns the probability with which a call is shed; asks what time it is only if it may be above 0.
    #[inline]
    pub(super) fn rejection(
        &self,
        settings: &LoadShedBuilder,
        rule: Throttle,
        share: f64,
        now: impl FnOnce() -> u64,
    ) -> f64 {
        let by_total = || {
            let (requests, accepts) = halves(self.total.load(Relaxed));
            rejection(requests, accepts, rule.k, share, settings.max_rejection)
        };
        if by_total() <= 0.0 {
            return 0.0;
        }
        self.forget(rule, now());
        by_total()
    }

    /// Counts a call, at its end.
    pub(super) fn count(&self, rule: Throttle, now: u64, accepted: bool) {
        let tick = self.forget(rule, now);
        let call = (1 << 32) | u64::from(accepted);
        self.total.fetch_add(call, Relaxed);
        self.slots[tick as usize % SLOTS].fetch_add(call, Relaxed);
    }

    /// Takes away what is older than the window; returns the current slot's number.
    fn forget(&self, rule: Throttle, now: u64) -> u64 {
        let tick = now / (nanos(rule.window) / SLOTS as u64).max(1);
        let seen = self.tick.fetch_max(tick, Relaxed);
        // Whoever moves the tick on empties the slots that it passes, each once.
        let passed = tick.saturating_sub(seen).min(SLOTS as u64);
        for at in (tick + 1 - passed)..=tick {
            let old = self.slots[at as usize % SLOTS].swap(0, Relaxed);
            self.total.fetch_sub(old, Relaxed);
        }
        tick
    }
}

/// The calls, and those of them that were accepted. Read between two writes, a word never says that more were.
const fn halves(word: u64) -> (u32, u32) {
    ((word >> 32) as u32, word as u32)
}

/// Nanoseconds, of a duration that settings allow.
pub(super) fn nanos(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// The words of one layer.
#[derive(Debug)]
pub(super) struct Load {
    pub(super) in_flight: InFlight,
    pub(super) waits: Waits,
    pub(super) answers: Answers,
    since: Instant,
}

impl Load {
    pub(super) fn new(since: Instant) -> Self {
        Self {
            in_flight: InFlight::default(),
            waits: Waits::default(),
            answers: Answers::default(),
            since,
        }
    }

    /// Returns that instant in nanoseconds since the layer was made.
    #[inline]
    pub(super) fn nanos(&self, instant: Instant) -> u64 {
        nanos(instant.saturating_duration_since(self.since))
    }
}
