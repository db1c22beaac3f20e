//! What an inbox promises.

use std::sync::Arc;
use std::time::Duration;

use super::EventBackend;
use crate::events::Seen;

/// In the consumer's own transaction: a rollback forgets it.
pub async fn a_message_is_processed_once_a_consumer(backend: Arc<dyn EventBackend>) {
    assert_eq!(backend.process("stock", "m", false).await, Seen::First);
    assert_eq!(backend.effects().await, 0);
    assert_eq!(backend.process("stock", "m", true).await, Seen::First);
    assert_eq!(backend.process("stock", "m", true).await, Seen::Before);
    assert_eq!(backend.process("mails", "m", true).await, Seen::First);
    assert_eq!(backend.effects().await, 2);
}

/// Each with a transaction of its own, all at once.
pub async fn of_deliveries_that_race_one_has_an_effect(backend: Arc<dyn EventBackend>) {
    let all = (0..6).map(|_| {
        let backend = backend.clone();
        tokio::spawn(async move { backend.process("stock", "m", true).await })
    });
    let all: Vec<_> = all.collect();
    for one in all {
        one.await.unwrap();
    }
    assert_eq!(backend.effects().await, 1);
}

/// A little at a time.
pub async fn what_is_past_its_retention_is_forgotten(backend: Arc<dyn EventBackend>) {
    for number in 0..10 {
        backend.process("stock", &format!("m{number}"), true).await;
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(backend.sweep(4).await, 4);
    assert_eq!(backend.sweep(100).await, 6);
    assert_eq!(backend.process("stock", "m3", true).await, Seen::First);
}
