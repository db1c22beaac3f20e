//! Turning events into measurements.

use std::sync::Arc;

use mamparo_core::vitals::Monitored;
use mamparo_core::{Budget, Dependency, Event, Observer, What, clock};
use opentelemetry::metrics::MeterProvider;

use super::count::named;
use super::told::tell;
use super::watched::Watched;
use super::{Instruments, Places};
use crate::source::{Meters, Pulse};

/// Turns what layers report into metrics, and into events on the operation's span; see the [module](super).
///
/// Make one per program and give a clone to every layer: clones share everything.
#[derive(Clone, Debug)]
pub struct Metrics {
    meters: Arc<(Meters, Pulse)>,
    pub(crate) watched: Arc<Watched>,
}

impl Metrics {
    /// Counts with the global meter provider, once there is one.
    #[must_use]
    pub fn new() -> Self {
        Self::with(Meters::global())
    }

    /// Counts with this meter provider.
    ///
    /// ```
    /// use mamparo_telemetry::Metrics;
    /// use opentelemetry_sdk::metrics::SdkMeterProvider;
    ///
    /// let provider = SdkMeterProvider::builder().build();
    /// let metrics = Metrics::of(&provider);
    /// ```
    #[must_use]
    pub fn of(provider: &dyn MeterProvider) -> Self {
        Self::with(Meters::given(provider))
    }

    fn with(meters: Meters) -> Self {
        let metrics = Self {
            meters: Arc::new((meters, Pulse::new())),
            watched: Arc::default(),
        };
        // A provider that was passed in is there already; a budget must not wait for the first event.
        metrics.instruments();
        metrics
    }

    /// Reports what a budget allows and what was consumed of it, whenever metrics are collected.
    ///
    /// At most [`MAX_BUDGETS`](super::MAX_BUDGETS) are watched; more are ignored.
    ///
    /// ```
    /// use mamparo_core::Budget;
    /// use mamparo_telemetry::Metrics;
    ///
    /// let budget = Budget::default();
    /// let metrics = Metrics::new().watch_budget("catalog", &budget);
    /// ```
    #[must_use]
    pub fn watch_budget(self, dependency: impl Into<Dependency>, budget: &Budget) -> Self {
        self.watched
            .budgets
            .watch(dependency.into(), budget.clone());
        self
    }

    /// Reports how many calls hold a place of a bulkhead, wait for one, and may hold one, whenever metrics are collected.
    ///
    /// At most [`MAX_BULKHEADS`](super::MAX_BULKHEADS) are watched; more are ignored.
    ///
    /// ```
    /// use mamparo_telemetry::Metrics;
    /// use mamparo_telemetry::metrics::Places;
    ///
    /// # #[derive(Clone)] struct Handle;
    /// # impl Handle { fn in_flight(&self) -> usize { 3 } fn queued(&self) -> usize { 0 } fn limit(&self) -> usize { 64 } }
    /// # let handle = Handle;
    /// let metrics = Metrics::new().watch_bulkhead("catalog", move || {
    ///     Places::new(handle.in_flight(), handle.queued(), handle.limit())
    /// });
    /// ```
    #[must_use]
    pub fn watch_bulkhead(
        self,
        dependency: impl Into<Dependency>,
        read: impl Fn() -> Places + Send + Sync + 'static,
    ) -> Self {
        self.watched
            .bulkheads
            .watch(dependency.into(), Box::new(read));
        self
    }

    /// Reports the state of a dependency's circuit breaker from now on, and not only from its first change on.
    ///
    /// Its changes are heard as events; a breaker that is made anew is closed.
    ///
    /// ```
    /// use mamparo_telemetry::Metrics;
    ///
    /// let metrics = Metrics::new().watch_breaker("catalog");
    /// ```
    #[must_use]
    pub fn watch_breaker(self, dependency: impl Into<Dependency>) -> Self {
        self.watched.breakers.watch(dependency.into());
        self
    }

    /// Reports the breakers, bulkheads and budgets of all dependencies that these know, whenever metrics are collected: a policy
    /// file's, say, as it is loaded then.
    ///
    /// Whoever is known need not be watched by name. At most [`MAX_MONITORED`](super::MAX_MONITORED) are asked; more are ignored.
    #[must_use]
    pub fn watch(self, monitored: impl Monitored) -> Self {
        self.watched.sources.add(Arc::new(monitored));
        self
    }

    pub(crate) fn instruments(&self) -> Option<&Instruments> {
        let (meters, pulse) = &*self.meters;
        let instruments = meters.find(|| pulse.is_due(clock::now()))?;
        self.watched.observe_with(instruments.meter());
        Some(instruments)
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Observer for Metrics {
    fn on(&self, event: &Event<'_>) {
        match event.what {
            // Operations and attempts are counted by their own layers, keys and answers are not counted.
            What::AttemptEnded { .. }
            | What::OperationEnded { .. }
            | What::KeyAdded { .. }
            | What::ErrorAnswered { .. } => return,
            What::BreakerTransition(change) => {
                let dependency = named(change.dependency, event.context);
                self.watched.breakers.follow(dependency, change);
            }
            _ => tell(&event.what),
        }
        if let Some(instruments) = self.instruments() {
            instruments.count(event.context, &event.what);
        }
    }
}
