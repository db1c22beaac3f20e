//! Turning events into measurements.

use std::sync::Arc;
use std::time::Duration;

use mamparo_core::{Budget, CallContext, Dependency, Event, Kind, Observer, What, clock};
use opentelemetry::metrics::{Counter, MeterProvider};
use opentelemetry::trace::TraceContextExt;
use opentelemetry::{Context, KeyValue, Value};

use super::budgets::Budgets;
use super::{Attributes, Instruments};
use crate::semconv::{DEPENDENCY, REASON, SENT};
use crate::source::{Meters, Pulse};

/// Turns what layers report into metrics, and into events on the operation's span; see the [module](super).
///
/// Make one per program and give a clone to every layer: clones share everything.
#[derive(Clone, Debug)]
pub struct Metrics {
    meters: Arc<(Meters, Pulse)>,
    budgets: Arc<Budgets>,
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
            budgets: Arc::default(),
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
        self.budgets.watch(dependency.into(), budget.clone());
        self
    }

    fn instruments(&self) -> Option<&Instruments> {
        let (meters, pulse) = &*self.meters;
        let instruments = meters.find(|| pulse.is_due(clock::now()))?;
        self.budgets.observe_with(instruments.meter());
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
        if let What::ResendScheduled {
            reason,
            wait,
            remaining,
            ..
        } = event.what
        {
            tell_span(reason, wait, remaining);
        }
        if let Some(instruments) = self.instruments() {
            instruments.count(event.context, &event.what);
        }
    }
}

impl Instruments {
    fn count(&self, context: &CallContext, what: &What<'_>) {
        let by = |reason: &'static str| {
            Attributes::<3>::new()
                .with(DEPENDENCY, context.dependency().as_str())
                .with(REASON, reason)
        };
        match *what {
            What::ResendScheduled { reason, .. } => {
                self.resends.add(1, by(reason.as_str()).as_slice());
            }
            What::NotResent { reason, .. } => {
                self.refused_resends.add(1, by(reason.as_str()).as_slice());
            }
            What::Rejected(rejection) => {
                let reason = by(rejection.reason().as_str());
                let attributes = reason.with(SENT, rejection.sent());
                self.rejections.add(1, attributes.as_slice());
            }
            What::LateWork { late } => {
                let attributes =
                    Attributes::<1>::new().with(DEPENDENCY, context.dependency().as_str());
                self.late_work
                    .record(late.as_secs_f64(), attributes.as_slice());
            }
            What::Nested { .. } => {
                let attributes =
                    Attributes::<1>::new().with(DEPENDENCY, context.dependency().as_str());
                self.nested_retries.add(1, attributes.as_slice());
            }
            What::MalformedDeadline { .. } => one(&self.doubted_deadlines, "malformed"),
            What::DeadlineClamped { .. } => one(&self.doubted_deadlines, "clamped"),
            What::SkewSuspected => one(&self.doubted_deadlines, "skew_suspected"),
            // Operations and attempts are counted by their own layers, keys are not counted.
            _ => {}
        }
    }
}

fn one(counter: &Counter<u64>, reason: &'static str) {
    counter.add(1, Attributes::<1>::new().with(REASON, reason).as_slice());
}

/// Puts the event on the span that is current: the operation's, since a retry runs inside it.
#[cold]
fn tell_span(reason: Kind, wait: Duration, remaining: Option<Duration>) {
    Context::map_current(|context| {
        let span = context.span();
        if !span.is_recording() {
            return;
        }
        let mut attributes = Vec::with_capacity(3);
        attributes.push(KeyValue::new("reason", reason.as_str()));
        attributes.push(KeyValue::new("backoff_ms", millis(wait)));
        let remaining = remaining.map(millis);
        attributes.extend(remaining.map(|ms| KeyValue::new("remaining_deadline_ms", ms)));
        span.add_event("retry scheduled", attributes);
    });
}

fn millis(duration: Duration) -> Value {
    Value::I64(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX))
}
