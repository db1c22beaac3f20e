//! Moves the limit of a bulkhead's places.

use std::num::NonZeroU64;
use std::sync::PoisonError;
use std::time::Duration;

use mamparo_core::Verdict;
use mamparo_core::clock::{self, Instant};

use super::super::places::Places;
use super::AdaptiveLimit;
use super::meter::{Meter, Sample};
use crate::sync::{Mutex, MutexGuard};

/// Moves the limit of a bulkhead's places by what its calls tell.
#[derive(Debug)]
pub(in super::super) struct Governor {
    settings: AdaptiveLimit,
    made: Instant,
    meter: Mutex<Meter>,
}

/// When a call began, in nanoseconds after its governor was made, and one: in every call's future, so small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Started(NonZeroU64);

impl Governor {
    pub(in super::super) fn new(settings: AdaptiveLimit, limit: usize) -> Self {
        let meter = Mutex::new(Meter::new(&settings, limit));
        Self {
            settings,
            made: clock::now(),
            meter,
        }
    }

    /// Says that a call begins now.
    #[cold]
    pub(in super::super) fn start(&self) -> Started {
        Started(NonZeroU64::MIN.saturating_add(self.age(clock::now())))
    }

    /// For 584 years.
    fn age(&self, now: Instant) -> u64 {
        now.saturating_duration_since(self.made).as_nanos() as u64
    }

    /// Learns from a call that began at `since`, and whose head is there `now` with so many in flight.
    ///
    /// Returns the limit before and after it moved.
    ///
    /// Under one lock, so that the limit is what the same calls one after the other would have made it.
    pub(in super::super) fn learn(
        &self,
        places: &Places,
        since: Started,
        now: Instant,
        verdict: Verdict,
        in_flight: usize,
    ) -> Option<(usize, usize)> {
        let latency = (self.age(now) + 1).saturating_sub(since.0.get());
        let sample = Sample::of(Duration::from_nanos(latency), verdict)?;
        let mut meter = self.meter();
        let limit = meter.learn(&self.settings, now, sample, in_flight)?;
        let before = places.occupancy().limit();
        if limit == before {
            return None;
        }
        places.set_limit(limit);
        Some((before, limit))
    }

    /// Goes on from a limit that somebody has set.
    pub(in super::super) fn restart(&self, places: &Places, limit: usize) {
        let mut meter = self.meter();
        places.set_limit(meter.restart(&self.settings, limit));
    }

    /// An algorithm may panic; the meter is whole then, with its window gathered anew.
    fn meter(&self) -> MutexGuard<'_, Meter> {
        self.meter.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
