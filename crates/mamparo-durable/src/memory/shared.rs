use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mamparo_core::clock::WallClock;
use tokio::sync::Notify;

use super::limits::EngineLimits;
use super::queue::MemoryQueue;
use super::world::World;
use crate::backend::{Backend, Queue, QueueName};
use crate::machine::Utc;

/// How often a message is delivered before it is buried.
const REDELIVERY_LIMIT: u32 = 10;

/// A backend in memory. Clones share what is in it.
#[derive(Clone, Debug)]
pub struct Memory {
    world: Arc<Mutex<World>>,
    clock: Arc<dyn WallClock>,
    /// Told whenever something may have become ready.
    pub(super) changed: Arc<Notify>,
    pub(super) redelivery_limit: u32,
}

impl Memory {
    /// Makes an empty one that reads this clock.
    #[must_use]
    pub fn new(clock: impl WallClock) -> Self {
        Self {
            world: Arc::default(),
            clock: Arc::new(clock),
            changed: Arc::default(),
            redelivery_limit: REDELIVERY_LIMIT,
        }
    }

    /// Sets how often a message is delivered before it is buried; 10 by default.
    #[must_use]
    pub const fn redelivery_limit(mut self, deliveries: u32) -> Self {
        self.redelivery_limit = deliveries;
        self
    }

    /// Returns it as the parts that handlers work with, whole steps at once included.
    #[must_use]
    pub fn backend(&self) -> Backend {
        let this = Arc::new(self.clone());
        let queues = QueueName::ALL.map(|name| self.queue(name));
        Backend::new(this.clone(), this.clone(), queues)
            .with_outbox(this)
            .with_limits(Arc::new(EngineLimits(self.clone())))
    }

    /// Returns one of the queues.
    #[must_use]
    pub fn queue(&self, name: QueueName) -> Arc<dyn Queue> {
        Arc::new(MemoryQueue::new(self.clone(), name))
    }

    pub(super) fn clock(&self) -> &dyn WallClock {
        &*self.clock
    }

    pub(super) fn now(&self) -> Utc {
        Utc::of(&*self.clock)
    }

    pub(super) fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
