//! Which queue it is, and its bounds.

use std::time::Duration;

use mamparo_core::InvalidSetting;
use mamparo_durable::backend::QueueName;

use super::RabbitQueue;
use crate::{Settings, Topology};

/// What is released waits in the queue of the first of these that is as long.
const DELAYS: [Duration; 4] = [
    Duration::from_millis(200),
    Duration::from_secs(1),
    Duration::from_secs(5),
    Duration::from_secs(30),
];

/// How often a message is delivered before it is buried, where nothing else is said.
const REDELIVERY_LIMIT: u32 = 10;

/// The broker's own limit, for what ends the connection before anybody can look at it.
const BROKERS_LIMIT: u32 = 100;

/// As many messages are kept at hand or under a lease at once, where nothing else is said.
const PREFETCH: u16 = 256;

/// Makes a [`RabbitQueue`].
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct RabbitQueueBuilder {
    pub(super) settings: Settings,
    pub(super) name: QueueName,
    pub(super) queue: String,
    pub(super) delays: Vec<Duration>,
    pub(super) redelivery_limit: u32,
    pub(super) prefetch: u16,
}

impl RabbitQueueBuilder {
    pub(super) fn of(settings: Settings, name: QueueName, queue: String) -> Self {
        Self {
            settings,
            name,
            queue,
            delays: DELAYS.to_vec(),
            redelivery_limit: REDELIVERY_LIMIT,
            prefetch: PREFETCH,
        }
    }

    /// Sets how often a message is delivered before it is buried; 10 by default, from 1 to 100. A delivery whose connection was
    /// lost counts.
    pub const fn redelivery_limit(mut self, deliveries: u32) -> Self {
        self.redelivery_limit = deliveries;
        self
    }

    /// Sets how many messages are kept at hand or under a lease at once; 256 by default. Other engines get none of these.
    pub const fn prefetch(mut self, messages: u16) -> Self {
        self.prefetch = messages;
        self
    }

    /// Sets the delays that have a queue each; 200 ms, 1 s, 5 s and 30 s by default.
    ///
    /// What is released waits the first that is as long: 2 s become 5. What waits longer than the last goes through that queue again.
    pub fn delays(mut self, delays: impl IntoIterator<Item = Duration>) -> Self {
        self.delays = delays.into_iter().collect();
        self
    }

    /// Checks them; nothing is connected yet.
    ///
    /// # Errors
    ///
    /// [`InvalidSetting`] for a name or delays that [`Topology`] refuses, a limit out of its range, or no prefetch.
    pub fn build(self) -> Result<RabbitQueue, InvalidSetting> {
        if !(1..=BROKERS_LIMIT).contains(&self.redelivery_limit) {
            let reason = "must be from 1 to 100";
            return Err(InvalidSetting::new(
                "redelivery_limit",
                self.redelivery_limit,
                reason,
            ));
        }
        if self.prefetch == 0 {
            return Err(InvalidSetting::new("prefetch", 0, "must be at least 1"));
        }
        let topology = Topology::builder(&self.queue)
            .delays(self.delays.iter().copied())
            .delivery_limit(BROKERS_LIMIT)
            .build()?;
        Ok(RabbitQueue::new(self, topology))
    }
}
