//! Bulkheads that are read whenever metrics are collected.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mamparo_core::Dependency;
use opentelemetry::KeyValue;
use opentelemetry::metrics::Meter;

use super::catalog::{BULKHEAD_IN_FLIGHT, BULKHEAD_LIMIT, BULKHEAD_QUEUED};
use super::metric::Metric;
use super::sources::Sources;
use crate::semconv::DEPENDENCY;

/// As many bulkheads as are watched.
pub const MAX_BULKHEADS: usize = 1024;

/// The places of a bulkhead at one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Places {
    /// How many calls hold one.
    pub in_flight: usize,
    /// How many calls wait for one.
    pub queued: usize,
    /// How many there are.
    pub limit: usize,
}

impl Places {
    /// Puts what a bulkhead's handle says together.
    #[must_use]
    pub const fn new(in_flight: usize, queued: usize, limit: usize) -> Self {
        Self {
            in_flight,
            queued,
            limit,
        }
    }
}

type Read = Box<dyn Fn() -> Places + Send + Sync>;

/// The bulkheads that are watched.
#[derive(Clone, Default)]
pub(super) struct Bulkheads(Arc<Mutex<Vec<(Dependency, Read)>>>);

impl Bulkheads {
    fn watched(&self) -> MutexGuard<'_, Vec<(Dependency, Read)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn watch(&self, dependency: Dependency, read: Read) {
        let mut watched = self.watched();
        if watched.len() < MAX_BULKHEADS {
            watched.push((dependency, read));
        }
    }

    pub(super) fn observe_with(&self, meter: &Meter, sources: &Sources) {
        let to = (meter, sources);
        self.observe(to, BULKHEAD_IN_FLIGHT, |places| places.in_flight);
        self.observe(to, BULKHEAD_QUEUED, |places| places.queued);
        self.observe(to, BULKHEAD_LIMIT, |places| places.limit);
    }

    fn observe(
        &self,
        (meter, sources): (&Meter, &Sources),
        metric: Metric,
        part: impl Fn(Places) -> usize + Send + Sync + 'static,
    ) {
        let (bulkheads, sources) = (self.clone(), sources.clone());
        // The meter keeps the callback; the handle is good for nothing else.
        let _handle = meter
            .i64_observable_up_down_counter(metric.name)
            .with_unit(metric.unit)
            .with_description(metric.says)
            .with_callback(move |observer| {
                let tell = |dependency: Dependency, places| {
                    let value = i64::try_from(part(places)).unwrap_or(i64::MAX);
                    observer.observe(value, &[KeyValue::new(DEPENDENCY, dependency.as_str())]);
                };
                for (dependency, read) in bulkheads.watched().iter() {
                    tell(*dependency, read());
                }
                sources.each(|vitals| {
                    if let Some(it) = vitals.places {
                        let places = Places::new(it.in_flight, it.queued, it.limit);
                        tell(vitals.dependency, places);
                    }
                });
            })
            .build();
    }
}

impl fmt::Debug for Bulkheads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bulkheads")
            .field("watched", &self.watched().len())
            .finish()
    }
}
