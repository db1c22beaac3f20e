//! A histogram, and a counter that is written together with it, once for every call.

use std::fmt;
#[cfg(feature = "sdk")]
use std::sync::OnceLock;

use opentelemetry::KeyValue;
#[cfg(feature = "sdk")]
use opentelemetry::metrics::{BoundCounter, BoundHistogram};
use opentelemetry::metrics::{Counter, Histogram};

/// As many labels as are bound; the SDK looks others up at every call.
#[cfg(feature = "sdk")]
pub(super) const MAX_BOUND: usize = 16;

/// What a measurement is broken down by. There are few that differ.
pub(crate) trait Labels: Clone + PartialEq {
    /// Calls `f` with the attributes for the histogram, and with those for the counter.
    fn with<R>(&self, f: impl FnOnce(&[KeyValue], &[KeyValue]) -> R) -> R;
}

/// A histogram of durations, and a counter of how many there were, broken down by something else.
pub(crate) struct Pairs<L> {
    histogram: Histogram<f64>,
    /// None where the histogram's own count says the same.
    counter: Option<Counter<u64>>,
    /// In the order of their first use: as a rule, what is frequent comes first.
    #[cfg(feature = "sdk")]
    bound: [OnceLock<Bound<L>>; MAX_BOUND],
    #[cfg(not(feature = "sdk"))]
    bound: std::marker::PhantomData<fn(L)>,
}

impl<L: Labels> Pairs<L> {
    pub(super) const fn new(histogram: Histogram<f64>, counter: Option<Counter<u64>>) -> Self {
        Self {
            histogram,
            counter,
            #[cfg(feature = "sdk")]
            bound: [const { OnceLock::new() }; MAX_BOUND],
            #[cfg(not(feature = "sdk"))]
            bound: std::marker::PhantomData,
        }
    }

    pub(crate) fn record(&self, labels: &L, seconds: f64) {
        #[cfg(feature = "sdk")]
        if let Some(bound) = self.bound(labels) {
            bound.histogram.record(seconds);
            if let Some(counter) = &bound.counter {
                counter.add(1);
            }
            return;
        }
        labels.with(|of_duration, of_count| {
            self.histogram.record(seconds, of_duration);
            if let Some(counter) = &self.counter {
                counter.add(1, of_count);
            }
        });
    }

    /// Finds the labels among those that are bound, and binds them if there is a place.
    #[cfg(feature = "sdk")]
    fn bound(&self, labels: &L) -> Option<&Bound<L>> {
        let bind = || {
            labels.with(|of_duration, of_count| Bound {
                labels: labels.clone(),
                histogram: self.histogram.bind(of_duration),
                counter: self.counter.as_ref().map(|counter| counter.bind(of_count)),
            })
        };
        let mut all = self.bound.iter().map(|place| place.get_or_init(bind));
        all.find(|bound| bound.labels == *labels)
    }
}

/// Instruments that were told their labels once, and look none up any more.
#[cfg(feature = "sdk")]
struct Bound<L> {
    labels: L,
    histogram: BoundHistogram<f64>,
    counter: Option<BoundCounter<u64>>,
}

impl<L> fmt::Debug for Pairs<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pairs").finish_non_exhaustive()
    }
}
