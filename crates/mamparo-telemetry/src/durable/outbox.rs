//! What relays tell of their outboxes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mamparo_core::clock::{self, Instant};
use mamparo_durable::events::Backlog;
use opentelemetry::KeyValue;
use opentelemetry::metrics::{AsyncInstrument, Counter, Meter};

use crate::metrics::Metric;
use crate::metrics::outbox::{EVENTS, LAG, PUBLISHED, UNCONFIRMED};
use crate::semconv::{OUTBOX_RELAY, OUTBOX_STATE};

/// As many relays are read when metrics are collected; of those past them, only what they publish is counted.
pub const MAX_RELAYS: usize = 1_024;

/// What a relay told last is read for so long: several times as long as from one telling to the next. Then it has stopped, or its store
/// does not answer.
const READ_FOR: Duration = Duration::from_secs(30);

/// The instruments of what relays do.
#[derive(Debug)]
pub(crate) struct Published {
    confirmed: Counter<u64>,
    unconfirmed: Counter<u64>,
}

impl Published {
    pub(crate) fn new(meter: &Meter) -> Self {
        let counter = |metric: Metric| {
            let counter = meter.u64_counter(metric.name).with_unit(metric.unit);
            counter.with_description(metric.says).build()
        };
        Self {
            confirmed: counter(PUBLISHED),
            unconfirmed: counter(UNCONFIRMED),
        }
    }

    pub(super) fn count(&self, relay: &str, confirmed: u64, unconfirmed: u64) {
        let relay = [KeyValue::new(OUTBOX_RELAY, relay.to_owned())];
        self.confirmed.add(confirmed, &relay);
        self.unconfirmed.add(unconfirmed, &relay);
    }
}

/// The outboxes, by their relays' names.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outboxes(Arc<Mutex<BTreeMap<String, Told>>>);

/// What a relay told last.
#[derive(Clone, Copy, Debug)]
struct Told {
    waiting: u64,
    parked: u64,
    lag: Duration,
    at: Instant,
}

impl Outboxes {
    pub(super) fn note(&self, relay: &str, backlog: &Backlog, lag: Duration) {
        let told = Told {
            waiting: backlog.waiting,
            parked: backlog.parked,
            lag,
            at: clock::now(),
        };
        let mut all = self.all();
        if all.len() < MAX_RELAYS || all.contains_key(relay) {
            all.insert(relay.to_owned(), told);
        }
    }

    pub(crate) fn observe_with(&self, meter: &Meter) {
        let (events, lags) = (self.clone(), self.clone());
        // The meter keeps the callbacks; the handles are good for nothing else.
        let _handle = meter
            .u64_observable_gauge(EVENTS.name)
            .with_unit(EVENTS.unit)
            .with_description(EVENTS.says)
            .with_callback(move |to| events.each(clock::now(), |relay, told| told.count(relay, to)))
            .build();
        let _handle = meter
            .f64_observable_gauge(LAG.name)
            .with_unit(LAG.unit)
            .with_description(LAG.says)
            .with_callback(move |to| {
                lags.each(clock::now(), |relay, told| {
                    to.observe(told.lag.as_secs_f64(), &[relay]);
                });
            })
            .build();
    }

    fn each(&self, now: Instant, tell: impl Fn(KeyValue, Told)) {
        let fresh = |told: &Told| now.saturating_duration_since(told.at) <= READ_FOR;
        for (relay, told) in self.all().iter().filter(|(_, told)| fresh(told)) {
            tell(KeyValue::new(OUTBOX_RELAY, relay.clone()), *told);
        }
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Told>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Told {
    fn count(self, relay: KeyValue, to: &dyn AsyncInstrument<u64>) {
        let state = |state| KeyValue::new(OUTBOX_STATE, state);
        to.observe(self.waiting, &[relay.clone(), state("waiting")]);
        to.observe(self.parked, &[relay, state("parked")]);
    }
}

#[cfg(test)]
mod tests {
    use mamparo_durable::handler::Listener as _;
    use mamparo_durable::machine::Utc;

    use super::*;
    use crate::Metrics;
    use crate::testing::{Counted, Points};

    const SECOND: Duration = Duration::from_secs(1);

    fn line(points: &[(&str, u64)]) -> Points {
        let points = points.iter();
        points.map(|(line, it)| ((*line).to_owned(), *it)).collect()
    }

    #[test]
    fn what_a_relay_does_is_counted_and_what_it_has_before_it_is_told() {
        let counted = Counted::new();
        let metrics = Metrics::of(&counted.provider);
        let of = "mamparo.outbox.relay=orders";
        metrics.backlog("orders", &Backlog::new(0, 0, None), Duration::ZERO);
        let unconfirmed = || counted.points("mamparo.outbox.unconfirmed_events");
        assert_eq!(unconfirmed(), line(&[(of, 0)]), "begins at zero");

        metrics.published("orders", 5);
        metrics.published("orders", 2);
        metrics.unconfirmed("orders", 3);
        let backlog = Backlog::new(7, 1, Some(Utc::MIN));
        metrics.backlog("orders", &backlog, 90 * SECOND);
        let published = counted.points("mamparo.outbox.published_events");
        assert_eq!(published, line(&[(of, 7)]));
        assert_eq!(unconfirmed(), line(&[(of, 3)]));
        assert_eq!(
            counted.points("mamparo.outbox.oldest_event.age"),
            line(&[(of, 90)])
        );
        let (parked, waiting) = (
            format!("{of} mamparo.outbox.state=parked"),
            format!("{of} mamparo.outbox.state=waiting"),
        );
        let events = line(&[(&parked, 1), (&waiting, 7)]);
        assert_eq!(counted.points("mamparo.outbox.events"), events);
    }

    #[test]
    fn a_relay_that_tells_no_more_is_read_no_more() {
        let outboxes = Outboxes::default();
        outboxes.note("orders", &Backlog::default(), Duration::ZERO);
        let read = |after: Duration| {
            let read = std::cell::Cell::new(0);
            outboxes.each(clock::later(clock::now(), after), |_, _| read.set(1));
            read.get()
        };
        assert_eq!((read(READ_FOR - SECOND), read(READ_FOR + SECOND)), (1, 0));
    }

    /// Law 10.
    #[test]
    fn there_are_so_many_relays_and_no_more() {
        let outboxes = Outboxes::default();
        for number in 0..MAX_RELAYS + 5 {
            outboxes.note(&number.to_string(), &Backlog::default(), Duration::ZERO);
        }
        assert_eq!(outboxes.all().len(), MAX_RELAYS);
    }
}
