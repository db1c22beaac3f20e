//! What there is, and how late it is.

use std::time::Duration;

use super::Task;
use crate::backend::{Census, Depth, QueueName};
use crate::machine::Utc;

/// The defer plane at an instant.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Status {
    /// When it was asked.
    pub now: Utc,
    /// The transactions.
    pub census: Census,
    /// The messages.
    pub queues: Vec<(QueueName, Depth)>,
    /// Which tasks of this engine do not work.
    pub down: Vec<Task>,
}

impl Status {
    /// Returns how late the transaction is that is overdue for the longest; zero if none is.
    #[must_use]
    pub fn lag(&self) -> Duration {
        let since = self.census.overdue_since;
        since.map_or(Duration::ZERO, |since| self.now.since(since))
    }

    /// Returns how long the oldest has been under way that is not at its end.
    #[must_use]
    pub fn oldest(&self) -> Option<Duration> {
        self.census.oldest.map(|oldest| self.now.since(oldest))
    }

    /// Returns how many dead letters there are.
    #[must_use]
    pub fn dead(&self) -> u64 {
        self.queues.iter().map(|(_, depth)| depth.dead).sum()
    }
}
