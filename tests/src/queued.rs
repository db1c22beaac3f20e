//! The suite that every backend runs, with answers and requests in a RabbitMQ, and the rest in SQLite.
//!
//! Where the parts are different services there is no outbox, so its cases pass, and the others run with one thing after the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use mamparo_durable::backend::{Backend, QueueName};
use mamparo_durable::conformance::REDELIVERY_LIMIT;
use mamparo_rabbitmq::{RabbitQueue, Settings};
use mamparo_sqlite::SqliteDurable;
use mamparo_testkit::private::PrivateRabbit;
use tempfile::TempDir;

/// As few as it takes: each is a queue that is declared for each case.
const DELAYS: [Duration; 2] = [Duration::from_millis(300), Duration::from_secs(120)];

/// A busy machine may take so long.
const PATIENCE: Duration = Duration::from_secs(20);

async fn fresh() -> (Backend, TempDir) {
    static CASES: AtomicU32 = AtomicU32::new(0);
    let case = CASES.fetch_add(1, Ordering::Relaxed);
    let settings = Settings::builder(PrivateRabbit::shared().await.url())
        .connect_timeout(PATIENCE)
        .publish_timeout(PATIENCE)
        .build()
        .unwrap();
    let queue = |name: QueueName| {
        let queue = format!("case{case}.{}", name.as_str());
        let queue = RabbitQueue::builder(settings.clone(), name, queue);
        let queue = queue.redelivery_limit(REDELIVERY_LIMIT).delays(DELAYS);
        Arc::new(queue.build().unwrap())
    };
    let folder = tempfile::tempdir().unwrap();
    let file = SqliteDurable::builder(folder.path().join("engine.db"));
    let database = file.redelivery_limit(REDELIVERY_LIMIT).open().unwrap();
    let backend = database
        .backend()
        .with_queue(QueueName::Answers, queue(QueueName::Answers))
        .with_queue(QueueName::Requests, queue(QueueName::Requests));
    (backend, folder)
}

mamparo_durable::conformance!(fresh);
