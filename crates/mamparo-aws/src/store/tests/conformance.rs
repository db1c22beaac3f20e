//! The groups of the suite that are about a store. The others run with this one's own queues, in `crate::tests`.

use std::sync::Arc;

use mamparo_core::clock::SystemClock;
use mamparo_durable::backend::{Backend, QueueName};
use mamparo_durable::memory::Memory;

use super::support;
use crate::outbox::DynamoOutbox;

async fn fresh() -> (Backend, ()) {
    let memory = Memory::new(SystemClock)
        .redelivery_limit(mamparo_durable::conformance::REDELIVERY_LIMIT)
        .backend();
    let store = support::fresh().await;
    let queues = QueueName::ALL.map(|name| Arc::clone(memory.queue(name)));
    let scheduler = Arc::clone(memory.scheduler());
    let outbox = DynamoOutbox::start(
        store.clone(),
        Arc::clone(&scheduler),
        queues.clone(),
        Arc::new(()),
    );
    let backend = Backend::new(Arc::new(store), scheduler, queues);
    (backend.with_outbox(Arc::new(outbox)), ())
}

mamparo_durable::conformance!(fresh);
