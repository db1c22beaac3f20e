//! The metrics of outboxes and their relays, which the feature `durable` writes.

use super::metric::{Metric, counter, gauge};
use crate::semconv::{OUTBOX_RELAY, OUTBOX_STATE};

pub(crate) const PUBLISHED: Metric = counter(
    "mamparo.outbox.published_events",
    "{event}",
    &[OUTBOX_RELAY],
    "Events that the broker confirmed",
);

pub(crate) const UNCONFIRMED: Metric = counter(
    "mamparo.outbox.unconfirmed_events",
    "{event}",
    &[OUTBOX_RELAY],
    "Events that the broker refused or did not confirm, each time",
);

pub(crate) const EVENTS: Metric = gauge(
    "mamparo.outbox.events",
    "{event}",
    &[OUTBOX_RELAY, OUTBOX_STATE],
    "Events in the outbox that wait to be published or are parked; 10000 are that many or more",
);

pub(crate) const LAG: Metric = gauge(
    "mamparo.outbox.oldest_event.age",
    "s",
    &[OUTBOX_RELAY],
    "How long the oldest event has waited that is not parked",
);
