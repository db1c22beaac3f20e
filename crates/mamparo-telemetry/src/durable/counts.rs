//! What the engine tells, counted.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mamparo_core::Dependency;
use mamparo_durable::backend::QueueName;
use mamparo_durable::events::Backlog;
use mamparo_durable::handler::Listener;
use mamparo_durable::machine::{
    Alert, AlertKind, AuditEvent, Cause, Label, Note, Outcome, State, Terms,
};
use opentelemetry::metrics::{Counter, Histogram, Meter};
use opentelemetry::{KeyValue, Value};

use crate::Metrics;
use crate::metrics::Metric;
use crate::metrics::deferred::{
    ALERTS, ANSWERS, BURIED, FIRES, FORGOTTEN, LAG, POSTPONEMENTS, SCHEDULES,
};
use crate::semconv::{DEFER_KIND, DEFER_OUTCOME, DEFER_QUEUE, DEPENDENCY, REASON};

/// As many kinds of transactions as are told apart; those past them are `(other)`.
pub const MAX_KINDS: usize = 256;

/// Where the buckets of the lag end, in seconds: a herd may take minutes, and a store may be away for hours.
const LAG_BOUNDARIES: [f64; 16] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 1_800.0,
    7_200.0,
];

/// The instruments of what the engine tells.
#[derive(Debug)]
pub(crate) struct Counts {
    answers: Counter<u64>,
    schedules: Counter<u64>,
    postponements: Counter<u64>,
    forgotten: Counter<u64>,
    fires: Counter<u64>,
    lag: Histogram<f64>,
    alerts: Counter<u64>,
    buried: Counter<u64>,
    kinds: Mutex<HashSet<Arc<str>>>,
}

impl Counts {
    pub(crate) fn new(meter: &Meter) -> Self {
        let counter = |metric: Metric| {
            let counter = meter.u64_counter(metric.name).with_unit(metric.unit);
            counter.with_description(metric.says).build()
        };
        let lag = meter.f64_histogram(LAG.name).with_unit(LAG.unit);
        Self {
            answers: counter(ANSWERS),
            schedules: counter(SCHEDULES),
            postponements: counter(POSTPONEMENTS),
            forgotten: counter(FORGOTTEN),
            fires: counter(FIRES),
            lag: lag
                .with_description(LAG.says)
                .with_boundaries(LAG_BOUNDARIES.to_vec())
                .build(),
            alerts: counter(ALERTS),
            buried: counter(BURIED),
            kinds: Mutex::default(),
        }
    }

    /// Begins what alerts compare at zero: a first increase can only be seen from something.
    pub(super) fn begin(&self) {
        for kind in AlertKind::ALL {
            self.alerts.add(0, &[KeyValue::new(REASON, kind.as_str())]);
        }
        for queue in QueueName::ALL {
            self.bury(queue, 0);
        }
    }

    pub(super) fn bury(&self, queue: QueueName, messages: u64) {
        let queue = KeyValue::new(DEFER_QUEUE, queue.as_str());
        self.buried.add(messages, &[queue]);
    }

    fn transition(&self, terms: &Terms, event: &AuditEvent) {
        let waits = event.to == State::Scheduling;
        let outcome = outcome(event.cause);
        if waits || outcome.is_some() {
            let kind = KeyValue::new(DEFER_KIND, self.kind(&terms.kind));
            if let Some(outcome) = outcome {
                let outcome = KeyValue::new(DEFER_OUTCOME, outcome);
                self.answers.add(1, &[kind.clone(), outcome]);
            }
            if waits {
                let reason = KeyValue::new(REASON, name(event.cause));
                self.schedules.add(1, &[kind, reason]);
            }
        }
        if waits && matches!(event.cause, Cause::TechnicalFailure | Cause::Postponed) {
            self.postpone(terms.dependency.as_ref(), event.cause, 1);
        }
    }

    fn postpone(&self, dependency: Option<&Label>, cause: Cause, transactions: u64) {
        let dependency = dependency.map_or("", |it| Dependency::named(it.as_str()).as_str());
        let attributes = [
            KeyValue::new(DEPENDENCY, dependency),
            KeyValue::new(REASON, name(cause)),
        ];
        self.postponements.add(transactions, &attributes);
    }

    fn handled(&self, queue: QueueName, note: Note, lag: Duration) {
        if queue == QueueName::Fires {
            self.fires
                .add(1, &[KeyValue::new(DEFER_OUTCOME, note.as_str())]);
        }
        // What is delivered again, or too late to matter, says nothing about how late things are.
        if note == Note::Applied {
            let queue = KeyValue::new(DEFER_QUEUE, queue.as_str());
            self.lag.record(lag.as_secs_f64(), &[queue]);
        }
    }

    fn kind(&self, kind: &Label) -> Value {
        let mut kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = kinds.get(kind.as_str()) {
            return Value::String(Arc::clone(known).into());
        }
        if kinds.len() >= MAX_KINDS {
            return Dependency::OTHER.as_str().into();
        }
        let kept: Arc<str> = kind.as_str().into();
        kinds.insert(Arc::clone(&kept));
        Value::String(kept.into())
    }
}

/// What the dependency said, of a transition that an answer made.
const fn outcome(cause: Cause) -> Option<&'static str> {
    let outcome = match cause {
        Cause::Succeeded => Outcome::Success,
        Cause::Refused => Outcome::Refused,
        Cause::Declined => Outcome::Declined,
        Cause::TechnicalFailure => Outcome::Technical,
        _ => return None,
    };
    Some(outcome.as_str())
}

/// A cause as metrics spell it.
const fn name(cause: Cause) -> &'static str {
    match cause {
        Cause::TechnicalFailure => "technical_failure",
        Cause::FiredNow => "fired_now",
        Cause::GivenUp => "given_up",
        other => other.as_str(),
    }
}

impl Listener for Metrics {
    fn alert(&self, alert: &Alert) {
        if let Some(instruments) = self.instruments() {
            let reason = KeyValue::new(REASON, alert.kind.as_str());
            instruments.deferred.alerts.add(1, &[reason]);
        }
    }

    fn transition(&self, terms: &Terms, event: &AuditEvent) {
        if let Some(instruments) = self.instruments() {
            instruments.deferred.transition(terms, event);
        }
    }

    fn handled(&self, queue: QueueName, note: Note, lag: Duration) {
        if let Some(instruments) = self.instruments() {
            instruments.deferred.handled(queue, note, lag);
        }
    }

    fn postponed(&self, dependency: &Label, transactions: u64) {
        if let Some(instruments) = self.instruments() {
            let counts = &instruments.deferred;
            counts.postpone(Some(dependency), Cause::Postponed, transactions);
        }
    }

    fn forgotten(&self, transactions: u64) {
        if let Some(instruments) = self.instruments() {
            instruments.deferred.forgotten.add(transactions, &[]);
        }
    }

    fn published(&self, relay: &str, events: u64) {
        self.publish(relay, events, 0);
    }

    fn unconfirmed(&self, relay: &str, events: u64) {
        self.publish(relay, 0, events);
    }

    fn backlog(&self, relay: &str, backlog: &Backlog, lag: Duration) {
        self.watched.outboxes.note(relay, backlog, lag);
        // From zero on: a first increase can only be seen from something.
        self.publish(relay, 0, 0);
    }
}

impl Metrics {
    fn publish(&self, relay: &str, confirmed: u64, unconfirmed: u64) {
        if let Some(instruments) = self.instruments() {
            instruments.published.count(relay, confirmed, unconfirmed);
        }
    }
}
