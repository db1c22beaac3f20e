//! The parts, put together.

use std::sync::Arc;

use mamparo_durable::backend::{Backend, BackendError, Queue, QueueName, Scheduler, Store};

use crate::Aws;
use crate::outbox::DynamoOutbox;
use crate::queue::SqsQueue;
use crate::scheduler::EventBridge;
use crate::store::DynamoStore;

impl Aws {
    /// Returns the parts that an engine works with: DynamoDB, EventBridge Scheduler and SQS, and the outbox if the settings ask for it.
    ///
    /// The outbox's relay runs on this runtime, until the last clone of the backend is dropped. Make one backend a process: whoever takes
    /// a message settles it by the same.
    ///
    /// # Errors
    ///
    /// [`Trouble::Incompatible`](mamparo_durable::backend::Trouble::Incompatible) when a table is missing or is another program's,
    /// [`Trouble::Refused`](mamparo_durable::backend::Trouble::Refused) when it may not be asked, and
    /// [`Trouble::Unavailable`](mamparo_durable::backend::Trouble::Unavailable) when DynamoDB does not answer.
    pub async fn backend(&self) -> Result<Backend, BackendError> {
        DynamoStore::new(self.clone())
            .check(self.settings().outbox)
            .await?;
        let queues = QueueName::ALL.map(|name| SqsQueue::new(self, name));
        let [_, fires, _] = &queues;
        let scheduler: Arc<dyn Scheduler> = Arc::new(EventBridge::new(self, fires));
        let queues = queues.map(|queue| Arc::new(queue) as Arc<dyn Queue>);
        Ok(self.put_together(scheduler, queues))
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
