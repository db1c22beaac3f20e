//! All that is read when metrics are collected.

use std::sync::OnceLock;

use opentelemetry::metrics::Meter;

use super::breakers::Breakers;
use super::budgets::Budgets;
use super::places::Bulkheads;
use super::sources::Sources;

/// What is watched, and whether a meter reads it already.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    pub(super) budgets: Budgets,
    pub(super) bulkheads: Bulkheads,
    pub(super) breakers: Breakers,
    /// Those who know dependencies, besides what is watched by name.
    pub(super) sources: Sources,
    /// The engine of the defer plane, as it was looked at last.
    #[cfg(feature = "durable")]
    pub(crate) engine: crate::durable::Looks,
    /// Outboxes, as their relays told of them last.
    #[cfg(feature = "durable")]
    pub(crate) outboxes: crate::durable::Outboxes,
    /// The queues of messages, as they were looked at last.
    #[cfg(feature = "rabbitmq")]
    pub(crate) queues: crate::rabbitmq::Queues,
    observed: OnceLock<()>,
}

impl Watched {
    /// Has the meter read it all from now on; the first meter stays.
    pub(super) fn observe_with(&self, meter: &Meter) {
        self.observed.get_or_init(|| {
            self.budgets.observe_with(meter, &self.sources);
            self.bulkheads.observe_with(meter, &self.sources);
            self.breakers.observe_with(meter, &self.sources);
            #[cfg(feature = "durable")]
            self.engine.observe_with(meter);
            #[cfg(feature = "durable")]
            self.outboxes.observe_with(meter);
            #[cfg(feature = "rabbitmq")]
            self.queues.observe_with(meter);
        });
    }
}
