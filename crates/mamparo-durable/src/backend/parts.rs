//! A backend, put together.

use std::sync::Arc;

use mamparo::rate_limit::LimitStore;

use super::{Outbox, Queue, QueueName, Scheduler, Store};

/// The parts that handlers work with; one backend may be several of them.
#[derive(Clone, Debug)]
pub struct Backend {
    store: Arc<dyn Store>,
    scheduler: Arc<dyn Scheduler>,
    queues: [Arc<dyn Queue>; 3],
    outbox: Option<Arc<dyn Outbox>>,
    limits: Option<Arc<dyn LimitStore>>,
}

impl Backend {
    /// Puts a backend together whose parts are asked one after the other. The queues are answers, fires and requests.
    #[must_use]
    pub fn new(
        store: Arc<dyn Store>,
        scheduler: Arc<dyn Scheduler>,
        queues: [Arc<dyn Queue>; 3],
    ) -> Self {
        Self {
            store,
            scheduler,
            queues,
            outbox: None,
            limits: None,
        }
    }

    /// Does whole steps in one transaction of this outbox.
    #[must_use]
    pub fn with_outbox(mut self, outbox: Arc<dyn Outbox>) -> Self {
        self.outbox = Some(outbox);
        self
    }

    /// Takes one of the queues from elsewhere, such as a broker. A whole step is then no single transaction any more: the parts are
    /// asked one after the other. Not the fires, unless the scheduler publishes there too.
    #[must_use]
    pub fn with_queue(mut self, name: QueueName, queue: Arc<dyn Queue>) -> Self {
        let [answers, fires, requests] = &mut self.queues;
        match name {
            QueueName::Answers => *answers = queue,
            QueueName::Fires => *fires = queue,
            QueueName::Requests => *requests = queue,
        }
        self.without_outbox()
    }

    /// Keeps the rate of all engines on this backend together.
    #[must_use]
    pub fn with_limits(mut self, limits: Arc<dyn LimitStore>) -> Self {
        self.limits = Some(limits);
        self
    }

    /// Asks the parts one after the other, even if they share a database: a crash between sending and confirming then sends
    /// twice, under one idempotency key.
    #[must_use]
    pub fn without_outbox(mut self) -> Self {
        self.outbox = None;
        self
    }

    /// Returns the store.
    #[must_use]
    pub const fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Returns the scheduler.
    #[must_use]
    pub const fn scheduler(&self) -> &Arc<dyn Scheduler> {
        &self.scheduler
    }

    /// Returns one of the queues.
    #[must_use]
    pub const fn queue(&self, name: QueueName) -> &Arc<dyn Queue> {
        let [answers, fires, requests] = &self.queues;
        match name {
            QueueName::Answers => answers,
            QueueName::Fires => fires,
            QueueName::Requests => requests,
        }
    }

    /// Returns what keeps the engines' rate, if the backend can; without it each engine has its own.
    #[must_use]
    pub const fn limits(&self) -> Option<&Arc<dyn LimitStore>> {
        self.limits.as_ref()
    }

    /// Returns what does whole steps in one transaction, if the backend can.
    #[must_use]
    pub const fn outbox(&self) -> Option<&Arc<dyn Outbox>> {
        self.outbox.as_ref()
    }
}
