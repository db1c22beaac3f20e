//! How long successes took lately, over all threads: the delay by percentile.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use mamparo_core::clock::Instant;
use mamparo_core::shard::Each;

use super::config::HedgeBuilder;
use super::histogram::{BUCKETS, Histogram, percentile};

/// The window slides in so many steps.
const SLICES: u64 = 4;

/// No percentile is a shorter delay than this: a hedge would then be sent with nearly every operation.
const MIN_DELAY: Duration = Duration::from_millis(1);

/// How often the percentile is taken anew, at most.
const REFRESH: Duration = Duration::from_secs(1);

/// The latencies of a window that slides, and their percentile.
///
/// Every thread counts in a shard of its own; the percentile of all is taken once a second, by whoever asks then.
pub(super) struct Latency {
    since: Instant,
    share: f64,
    min_samples: u64,
    slice: Duration,
    shards: Each<Box<Shard>>,
    /// In nanoseconds; 0 while there are too few samples.
    delay: AtomicU64,
    /// When to take it anew, in nanoseconds after `since`.
    due: AtomicU64,
}

type Shard = [Slice; SLICES as usize];

struct Slice {
    /// The slice of time that is counted here, from 1.
    number: AtomicU64,
    counts: Histogram,
}

impl Latency {
    pub(super) fn new(settings: &HedgeBuilder, share: f64, now: Instant) -> Self {
        Self {
            since: now,
            share,
            min_samples: settings.min_samples.into(),
            slice: settings.window / SLICES as u32,
            shards: Each::new(),
            delay: AtomicU64::new(0),
            due: AtomicU64::new(0),
        }
    }

    /// Counts a latency.
    pub(super) fn record(&self, latency: Duration, now: Instant) {
        let slices = self.shards.own(|| Box::new(empty()));
        let number = self.number(now);
        let slice = &slices[(number % SLICES) as usize];
        let before = slice.number.load(Relaxed);
        let turned = before < number
            && (slice.number)
                .compare_exchange(before, number, Relaxed, Relaxed)
                .is_ok();
        if turned {
            slice.counts.clear();
        }
        slice.counts.record(latency);
    }

    /// Returns the percentile of the window; none while there are too few samples.
    pub(super) fn delay(&self, now: Instant) -> Option<Duration> {
        let elapsed = nanos(now.saturating_duration_since(self.since));
        let due = self.due.load(Relaxed);
        if elapsed >= due {
            let next = elapsed.saturating_add(nanos(REFRESH.min(self.slice)));
            // One of those who find it due takes it; the others go by the last one.
            if (self.due)
                .compare_exchange(due, next, Relaxed, Relaxed)
                .is_ok()
            {
                let delay = self.take(now).map_or(0, nanos);
                self.delay.store(delay, Relaxed);
            }
        }
        match self.delay.load(Relaxed) {
            0 => None,
            nanos => Some(Duration::from_nanos(nanos)),
        }
    }

    fn take(&self, now: Instant) -> Option<Duration> {
        let newest = self.number(now);
        let mut counts = [0; BUCKETS];
        for slice in self.shards.made().flat_map(|shard| shard.iter()) {
            let number = slice.number.load(Relaxed);
            if number + SLICES > newest {
                slice.counts.add_to(&mut counts);
            }
        }
        let enough = counts.iter().sum::<u64>() >= self.min_samples;
        let delay = percentile(&counts, self.share).filter(|_| enough)?;
        Some(delay.max(MIN_DELAY))
    }

    fn number(&self, now: Instant) -> u64 {
        let elapsed = nanos(now.saturating_duration_since(self.since));
        // A slice that was never counted in has the number 0; it is too old for any window.
        elapsed / nanos(self.slice) + SLICES
    }
}

fn empty() -> Shard {
    std::array::from_fn(|_| Slice {
        number: AtomicU64::new(0),
        counts: Histogram::new(),
    })
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl fmt::Debug for Latency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Latency")
            .field("share", &self.share)
            .field("delay", &Duration::from_nanos(self.delay.load(Relaxed)))
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use mamparo_core::clock;

    use super::*;
    use crate::hedge::HedgePolicy;

    const MS: Duration = Duration::from_millis(1);

    fn latency(now: Instant) -> Latency {
        let settings = HedgePolicy::builder().min_samples(10).window(4000 * MS);
        Latency::new(&settings, 0.5, now)
    }

    #[test]
    fn there_is_no_percentile_of_too_few() {
        let now = clock::now();
        let latency = latency(now);
        (0..9).for_each(|_| latency.record(50 * MS, now));
        assert_eq!(latency.delay(now), None);
        latency.record(50 * MS, now);
        assert_eq!(latency.delay(now + 999 * MS), None, "taken once a second");
        assert!(latency.delay(now + 1000 * MS).unwrap() >= 50 * MS);
    }

    #[test]
    fn the_window_slides_and_forgets() {
        let now = clock::now();
        let latency = latency(now);
        (0..10).for_each(|_| latency.record(50 * MS, now));
        (0..30).for_each(|_| latency.record(200 * MS, now + 3500 * MS));
        assert!(latency.delay(now + 3500 * MS).unwrap() >= 200 * MS);
        (0..15).for_each(|_| latency.record(10 * MS, now + 6500 * MS));
        assert!(latency.delay(now + 6500 * MS).unwrap() >= 200 * MS);
        assert!(
            latency.delay(now + 7500 * MS).unwrap() < 12 * MS,
            "the 30 are too old"
        );
        assert_eq!(
            latency.delay(now + 3_600_000 * MS),
            None,
            "and so are all, in the end"
        );
    }

    #[test]
    fn what_is_counted_anew_forgets_what_was_there() {
        let now = clock::now();
        let latency = latency(now);
        (0..11).for_each(|_| latency.record(200 * MS, now));
        (0..10).for_each(|_| latency.record(50 * MS, now + 4500 * MS));
        assert!(latency.delay(now + 4500 * MS).unwrap() < 60 * MS);
    }

    /// Row P-D3.
    #[test]
    fn a_percentile_is_never_below_a_millisecond() {
        let now = clock::now();
        let latency = latency(now);
        (0..10).for_each(|_| latency.record(Duration::ZERO, now));
        assert_eq!(latency.delay(now), Some(MS));
    }

    #[test]
    fn threads_count_together() {
        let now = clock::now();
        let latency = latency(now);
        std::thread::scope(|scope| {
            for _ in 0..5 {
                scope.spawn(|| (0..2).for_each(|_| latency.record(50 * MS, now)));
            }
        });
        assert!(latency.delay(now).is_some());
    }
}
