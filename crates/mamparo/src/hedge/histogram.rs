//! A histogram of durations in constant memory.

use std::array;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

/// Each doubling of the latency has so many buckets, so that a bucket is at most 6 % wide.
const PER_DOUBLING: usize = 16;

/// The narrowest bucket: 2¹⁶ ns, about 66 µs. What is below 1 ms needs no finer ones.
const UNIT_BITS: u32 = 16;

/// Doublings above the first 16 buckets, which are all of the narrowest width: up to 68 s.
const DOUBLINGS: usize = 16;

/// As many buckets as there are; what is slower counts in the last.
pub(super) const BUCKETS: usize = PER_DOUBLING * (DOUBLINGS + 1);

/// Counts durations; threads may count at the same time.
#[derive(Debug)]
pub(super) struct Histogram([AtomicU32; BUCKETS]);

impl Histogram {
    pub(super) fn new() -> Self {
        Self(array::from_fn(|_| AtomicU32::new(0)))
    }

    pub(super) fn record(&self, duration: Duration) {
        self.0[bucket(duration)].fetch_add(1, Relaxed);
    }

    pub(super) fn clear(&self) {
        for bucket in &self.0 {
            bucket.store(0, Relaxed);
        }
    }

    /// Adds these counts to others.
    pub(super) fn add_to(&self, sums: &mut [u64; BUCKETS]) {
        for (sum, bucket) in sums.iter_mut().zip(&self.0) {
            *sum += u64::from(bucket.load(Relaxed));
        }
    }
}

/// Returns the duration that this share of the counted ones stays below, exact to the width of a bucket.
pub(super) fn percentile(counts: &[u64; BUCKETS], share: f64) -> Option<Duration> {
    let total: u64 = counts.iter().sum();
    let rank = ((total as f64 * share).ceil() as u64).clamp(1, total.max(1));
    let mut below = 0;
    let reached = |count: &u64| {
        below += count;
        below >= rank
    };
    counts.iter().position(reached).map(upper_edge)
}

fn bucket(duration: Duration) -> usize {
    let units = (duration.as_nanos() >> UNIT_BITS) as usize;
    if units < PER_DOUBLING {
        return units;
    }
    let doubling = (units.ilog2() - PER_DOUBLING.ilog2()) as usize;
    let within = (units >> doubling) - PER_DOUBLING;
    (PER_DOUBLING * (doubling + 1) + within).min(BUCKETS - 1)
}

fn upper_edge(bucket: usize) -> Duration {
    let (doubling, within) = match bucket / PER_DOUBLING {
        0 => (0, bucket),
        row => (row - 1, PER_DOUBLING + bucket % PER_DOUBLING),
    };
    Duration::from_nanos(((within as u64 + 1) << doubling) << UNIT_BITS)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Row I8: whatever is counted, in constant memory.
        #[test]
        fn a_duration_is_below_the_edge_of_its_bucket_by_a_sixteenth_at_most(nanos in 0u64..68_000_000_000) {
            let edge = upper_edge(bucket(Duration::from_nanos(nanos))).as_nanos() as u64;
            prop_assert!(edge > nanos);
            prop_assert!(edge - nanos <= (nanos / 16).max(1 << UNIT_BITS));
        }

        #[test]
        fn a_longer_duration_is_in_no_earlier_bucket(a in any::<u64>(), b in any::<u64>()) {
            let (short, long) = (a.min(b), a.max(b));
            let of = |nanos| bucket(Duration::from_nanos(nanos));
            prop_assert!(of(short) <= of(long) && of(long) < BUCKETS);
        }
    }

    #[test]
    fn a_percentile_is_what_that_share_stays_below() {
        let histogram = Histogram::new();
        (1..=100).for_each(|ms| histogram.record(Duration::from_millis(ms)));
        let mut counts = [0; BUCKETS];
        histogram.add_to(&mut counts);
        for (share, exact) in [(0.5, 50.0), (0.95, 95.0), (0.99, 99.0)] {
            let found = percentile(&counts, share).unwrap().as_secs_f64() * 1e3;
            assert!(
                found >= exact && found <= exact * 1.07,
                "{share}: {found} ms"
            );
        }
        assert_eq!(percentile(&[0; BUCKETS], 0.5), None);
    }

    #[test]
    fn the_longest_duration_is_counted_in_the_last_bucket() {
        assert_eq!(bucket(Duration::MAX), BUCKETS - 1);
    }
}
