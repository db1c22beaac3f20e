//! What a consumer tells whoever observes it.

use std::fmt::{self, Debug};
use std::sync::Arc;
use std::time::Duration;

use super::Settled;
use crate::{Delivery, RabbitError, Topology};

/// What happened to a consumer or to one of its messages.
#[derive(Debug)]
#[non_exhaustive]
pub enum ConsumerEvent<'a> {
    /// It takes messages.
    Connected {
        /// Its queues.
        topology: &'a Topology,
    },
    /// It takes none, and tries to connect again.
    Disconnected {
        /// Its queues.
        topology: &'a Topology,
        /// Why.
        error: &'a RabbitError,
        /// The wait until then.
        wait: Duration,
    },
    /// A message was settled.
    Settled {
        /// Its queues; with their owner and runbook, which an alert about dead letters shows.
        topology: &'a Topology,
        /// The message.
        delivery: &'a Delivery,
        /// What became of it.
        settled: Settled,
        /// What the attempt said, if it failed.
        detail: &'a str,
        /// How long the attempt took.
        took: Duration,
    },
    /// A message could not be settled; it stays where it is, and is settled or delivered again.
    Unsettled {
        /// The message.
        delivery: &'a Delivery,
        /// Why.
        error: &'a RabbitError,
    },
    /// The task died, and is started again.
    Died {
        /// Its queues.
        topology: &'a Topology,
        /// What it said.
        why: &'a str,
    },
}

type Tell = dyn Fn(&ConsumerEvent<'_>) + Send + Sync;

/// Whoever is told, if anyone.
#[derive(Clone, Default)]
pub(crate) struct Report(pub(super) Option<Arc<Tell>>);

impl Report {
    pub(super) fn tell(&self, event: &ConsumerEvent<'_>) {
        if let Some(report) = &self.0 {
            report(event);
        }
    }
}

impl Debug for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Report" } else { "-" })
    }
}
