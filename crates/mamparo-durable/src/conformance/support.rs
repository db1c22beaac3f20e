//! Makes transactions for the cases.

use std::sync::Arc;
use std::time::Duration;

use mamparo_core::clock::SystemClock;

use crate::backend::{Backend, Begun, Delivery, NewTransaction, Queue, QueueName, Written};
use crate::machine::{
    AuditEvent, Cause, Progress, Record, State, Terms, TransactionId, Utc, Write,
};
use crate::policy::Policy;

/// The redelivery limit that the suite expects of a backend: a message that was delivered so often is buried instead.
pub const REDELIVERY_LIMIT: u32 = 4;

/// A lease that no case outlives.
pub(super) const LONG: Duration = Duration::from_secs(60);

/// A lease that is over soon.
pub(super) const SHORT: Duration = Duration::from_millis(300);

/// As long as anything is waited for that must happen.
const PATIENCE: Duration = Duration::from_secs(20);

pub(super) fn now() -> Utc {
    Utc::of(&SystemClock)
}

pub(super) fn id(text: &str) -> TransactionId {
    TransactionId::new(text).unwrap()
}

pub(super) fn record(name: &str) -> Record {
    Record::in_flight(Terms::new(id(name), "payment", &Policy::default(), now()))
}

pub(super) async fn begin(backend: &Backend, record: &Record) {
    let new = NewTransaction::new(record.clone(), &b"the request"[..]).unwrap();
    assert_eq!(backend.store().begin(new).await.unwrap(), Begun::New);
}

pub(super) async fn load(backend: &Backend, id: &TransactionId) -> Option<Record> {
    let mut loaded = backend.store().load(vec![id.clone()]).await;
    assert_eq!(loaded.len(), 1, "one result for each id");
    loaded.remove(0).unwrap()
}

/// What is stored of a transaction that must be there.
pub(super) async fn stored(backend: &Backend, id: &TransactionId) -> Record {
    load(backend, id)
        .await
        .unwrap_or_else(|| panic!("{id} is not stored"))
}

pub(super) async fn write(backend: &Backend, id: &TransactionId, write: Write) -> Written {
    let mut written = backend.store().write(vec![(id.clone(), write)]).await;
    assert_eq!(written.len(), 1, "one result for each write");
    written.remove(0).unwrap()
}

/// A write from one progress to another, with a row of history.
pub(super) fn transition(from: &Progress, to: &Progress, cause: Cause) -> Write {
    let event = AuditEvent {
        attempt: to.attempt_next.unwrap_or(to.attempt_current),
        seq: to.schedule_seq,
        fire_at: to.next_fire_at,
        ..AuditEvent::new(to.updated_at, Some(from.state), to.state, cause)
    };
    Write::new(from.expect(), to.clone(), event)
}

/// As after a refusal of the first attempt.
pub(super) fn waiting(record: &Record, state: State, fire_at: Utc) -> Progress {
    Progress {
        state,
        attempt_next: Some(2),
        next_fire_at: Some(fire_at),
        ..record.progress.clone()
    }
}

/// Begins a transaction and brings it where it is said to stand.
pub(super) async fn put(
    backend: &Backend,
    name: &str,
    progress: impl FnOnce(&Record) -> Progress,
) -> Record {
    let record = record(name);
    begin(backend, &record).await;
    let to = progress(&record);
    let moved = write(
        backend,
        &record.terms.id,
        transition(&record.progress, &to, Cause::Moved),
    )
    .await;
    assert_eq!(moved, Written::Applied);
    Record {
        progress: to,
        ..record
    }
}

pub(super) fn queue(backend: &Backend, name: QueueName) -> &Arc<dyn Queue> {
    backend.queue(name)
}

/// Takes until so many messages are there; fails if they don't come.
pub(super) async fn take(queue: &dyn Queue, messages: usize, lease: Duration) -> Vec<Delivery> {
    let mut taken = Vec::new();
    let all = async {
        while taken.len() < messages {
            taken.extend(queue.take(messages - taken.len(), lease).await.unwrap());
            if taken.len() < messages {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
    };
    let done = tokio::time::timeout(PATIENCE, all).await.is_ok();
    assert!(done, "{} of {messages} messages came", taken.len());
    taken
}

/// Takes one that must come.
pub(super) async fn take_one(queue: &dyn Queue, lease: Duration) -> Delivery {
    take(queue, 1, lease).await.remove(0)
}

/// Looks whether there is nothing to take now.
pub(super) async fn is_empty(queue: &dyn Queue) -> bool {
    queue.take(1, LONG).await.unwrap().is_empty()
}

/// Lets time pass.
pub(super) async fn pass(duration: Duration) {
    tokio::time::sleep(duration).await;
}

/// Waits for what must happen.
pub(super) async fn must<T>(future: impl Future<Output = T>) -> T {
    let done = tokio::time::timeout(PATIENCE, future).await;
    done.unwrap_or_else(|_| panic!("it has not happened after {PATIENCE:?}"))
}
