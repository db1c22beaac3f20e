//! The parts, put together.

use std::sync::Arc;

use mamparo_durable::backend::{Backend, Queue, QueueName, Scheduler, Store};

use crate::Aws;
use crate::outbox::DynamoOutbox;
use crate::queue::SqsQueue;
use crate::scheduler::EventBridge;
use crate::store::DynamoStore;

impl Aws {
    /// Returns the parts that an engine works with: DynamoDB, EventBridge Scheduler and SQS, and the outbox if it is asked for.
    ///
    /// Its relay runs on this runtime, until the last clone of the backend is dropped. Make one backend a process: whoever takes a
    /// message settles it by the same.
    ///
    /// # Panics
    ///
    /// With the outbox, outside of a tokio runtime.
    #[must_use]
    pub fn backend(&self) -> Backend {
        let queues = QueueName::ALL.map(|name| SqsQueue::new(self, name));
        let [_, fires, _] = &queues;
        let scheduler: Arc<dyn Scheduler> = Arc::new(EventBridge::new(self, fires));
        let queues = queues.map(|queue| Arc::new(queue) as Arc<dyn Queue>);
        self.put_together(scheduler, queues)
    }

    pub(crate) fn put_together(
        &self,
        scheduler: Arc<dyn Scheduler>,
        queues: [Arc<dyn Queue>; 3],
    ) -> Backend {
        let store = DynamoStore::new(self.clone());
        let stored: Arc<dyn Store> = Arc::new(store.clone());
        let backend = Backend::new(stored, Arc::clone(&scheduler), queues.clone());
        let settings = self.settings();
        if !settings.outbox {
            return backend;
        }
        let listener = Arc::clone(&settings.listener);
        let outbox = DynamoOutbox::start(store, scheduler, queues, listener);
        backend.with_outbox(Arc::new(outbox))
    }
}
