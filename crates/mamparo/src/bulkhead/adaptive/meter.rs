//! The calls of a window, and the limit that follows from them: pure.

use std::time::Duration;

use mamparo_core::clock::Instant;
use mamparo_core::{Class, Kind, Verdict};

use super::AdaptiveLimit;
use super::baseline::Baseline;
use super::window::Window;

/// A window's mean is of at least so many calls.
const FEWEST: u32 = 10;

/// What one call says of the dependency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sample {
    /// It was answered, after so long.
    Succeeded(Duration),
    /// The dependency has too much to do.
    Overloaded,
}

impl Sample {
    /// Reads a call's verdict; one that says nothing of the dependency's load is no sample.
    pub(super) fn of(latency: Duration, verdict: Verdict) -> Option<Self> {
        match verdict.class() {
            Class::Success if latency.is_zero() => None,
            Class::Success => Some(Self::Succeeded(latency)),
            Class::Failure(
                Kind::Timeout | Kind::Throttled | Kind::Unavailable | Kind::Connect | Kind::Reset,
            ) => Some(Self::Overloaded),
            Class::Failure(_) | Class::Ignored => None,
        }
    }
}

/// The limit, and the window that will move it next.
#[derive(Debug)]
pub(super) struct Meter {
    limit: f64,
    baseline: Baseline,
    opened: Option<Instant>,
    succeeded: u32,
    overloaded: u32,
    latencies: Duration,
    most_in_flight: usize,
}

impl Meter {
    pub(super) fn new(settings: &AdaptiveLimit, limit: usize) -> Self {
        Self {
            limit: limit as f64,
            baseline: Baseline::new(settings.memory()),
            opened: None,
            succeeded: 0,
            overloaded: 0,
            latencies: Duration::ZERO,
            most_in_flight: 0,
        }
    }

    /// Goes on from a limit that somebody has set, kept within bounds.
    pub(super) fn restart(&mut self, settings: &AdaptiveLimit, limit: usize) -> usize {
        let (floor, ceiling) = settings.bounds().into_inner();
        let limit = limit.clamp(floor, ceiling);
        self.limit = limit as f64;
        limit
    }

    /// Takes a call in that has ended, with how many were in flight; returns the limit when a window is over.
    pub(super) fn learn(
        &mut self,
        settings: &AdaptiveLimit,
        now: Instant,
        sample: Sample,
        in_flight: usize,
    ) -> Option<usize> {
        let opened = *self.opened.get_or_insert(now);
        match sample {
            Sample::Succeeded(latency) => {
                self.succeeded = self.succeeded.saturating_add(1);
                self.latencies = self.latencies.saturating_add(latency);
            }
            Sample::Overloaded => self.overloaded = self.overloaded.saturating_add(1),
        }
        self.most_in_flight = self.most_in_flight.max(in_flight);
        let calls = self.succeeded.saturating_add(self.overloaded);
        let over = now.saturating_duration_since(opened) >= settings.window();
        (over && calls >= FEWEST).then(|| self.close(settings, now))
    }

    fn close(&mut self, settings: &AdaptiveLimit, now: Instant) -> usize {
        let latency = self.latencies.checked_div(self.succeeded);
        let window = Window {
            succeeded: self.succeeded,
            overloaded: self.overloaded,
            latency,
            baseline: latency.map(|latency| self.baseline.observe(now, latency)),
            most_in_flight: self.most_in_flight,
        };
        (self.opened, self.latencies) = (None, Duration::ZERO);
        (self.succeeded, self.overloaded, self.most_in_flight) = (0, 0, 0);
        let wanted = settings.algorithm().next(self.limit, &window);
        let (floor, ceiling) = settings.bounds().into_inner();
        let tried = (window.most_in_flight as f64 * settings.headroom()).max(floor as f64);
        if !wanted.is_nan() {
            self.limit = wanted.min(tried).clamp(floor as f64, ceiling as f64);
        }
        self.limit as usize
    }
}
