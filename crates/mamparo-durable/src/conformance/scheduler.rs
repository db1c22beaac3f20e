//! What a [`Scheduler`](crate::backend::Scheduler) promises.

use std::time::Duration;

use super::support::{LONG, is_empty, must, now, pass, put, queue, take, take_one, waiting};
use crate::backend::{Backend, Created, Message, QueueName};
use crate::machine::{Record, Schedule, State, TransactionId, Utc};

async fn transaction(backend: &Backend, name: &str) -> TransactionId {
    let record: Record = put(backend, name, |record| {
        waiting(record, State::Scheduling, now())
    })
    .await;
    record.terms.id.clone()
}

async fn create(
    backend: &Backend,
    id: &TransactionId,
    attempt: u32,
    seq: u32,
    fire_at: Utc,
) -> Created {
    let schedule = Schedule {
        attempt,
        seq,
        fire_at,
    };
    let mut created = backend
        .scheduler()
        .create(vec![(id.clone(), schedule)])
        .await;
    assert_eq!(created.len(), 1, "one result for each schedule");
    created.remove(0).unwrap()
}

const HOUR: Duration = Duration::from_secs(3600);

/// Made again with the same instant, it is the same; with another, the first one stays.
pub async fn a_schedule_made_twice_is_one(backend: Backend) {
    let (id, other) = (
        transaction(&backend, "t").await,
        transaction(&backend, "t-2").await,
    );
    let later = now().plus(HOUR);
    assert_eq!(create(&backend, &id, 2, 0, later).await, Created::New);
    assert_eq!(create(&backend, &id, 2, 0, later).await, Created::Same);
    assert_eq!(
        create(&backend, &id, 2, 0, Utc::MIN).await,
        Created::Conflict
    );
    assert_eq!(create(&backend, &id, 2, 1, later).await, Created::New);
    assert_eq!(create(&backend, &other, 1, 0, later).await, Created::New);
    assert!(
        is_empty(&**queue(&backend, QueueName::Fires)).await,
        "the conflict changed the instant"
    );
    assert_eq!(
        queue(&backend, QueueName::Fires)
            .depth()
            .await
            .unwrap()
            .later,
        3
    );
}

/// It fires once it is due, with its payload, and never before.
pub async fn a_schedule_fires_when_it_is_due_and_never_before(backend: Backend) {
    let id = transaction(&backend, "t").await;
    let due = now().plus(Duration::from_millis(400));
    assert_eq!(create(&backend, &id, 2, 3, due).await, Created::New);
    let fires = queue(&backend, QueueName::Fires);
    let delivery = take_one(&**fires, LONG).await;
    assert!(now() >= due, "early");
    assert_eq!(
        delivery.message,
        Message::Fire {
            id,
            attempt: 2,
            seq: 3
        }
    );
    assert_eq!((delivery.number, delivery.since), (1, due));
    assert!(is_empty(&**fires).await, "twice");
}

/// An instant in the past fires at once, and one at the end of 9999 does not.
pub async fn the_past_fires_at_once_and_the_year_9999_does_not(backend: Backend) {
    let id = transaction(&backend, "t").await;
    assert_eq!(create(&backend, &id, 2, 0, Utc::MAX).await, Created::New);
    assert_eq!(create(&backend, &id, 2, 1, Utc::MIN).await, Created::New);
    let fires = queue(&backend, QueueName::Fires);
    assert_eq!(
        take_one(&**fires, LONG).await.message,
        Message::Fire {
            id,
            attempt: 2,
            seq: 1
        }
    );
    assert!(is_empty(&**fires).await);
}

/// What is deleted does not fire; deleting it twice is no error.
pub async fn a_deleted_schedule_does_not_fire(backend: Backend) {
    let id = transaction(&backend, "t").await;
    let soon = now().plus(Duration::from_millis(200));
    for seq in 0..2 {
        assert_eq!(create(&backend, &id, 2, seq, soon).await, Created::New);
    }
    backend.scheduler().delete(id.clone(), 2, 0).await.unwrap();
    backend.scheduler().delete(id.clone(), 2, 0).await.unwrap();
    let fires = queue(&backend, QueueName::Fires);
    assert_eq!(
        take_one(&**fires, LONG).await.message,
        Message::Fire {
            id: id.clone(),
            attempt: 2,
            seq: 1
        }
    );
    pass(Duration::from_millis(100)).await;
    assert!(is_empty(&**fires).await);
    assert_eq!(
        create(&backend, &id, 2, 0, now().plus(HOUR)).await,
        Created::New,
        "its name is free again"
    );
}

/// Whoever waits for fires wakes when one is due, and when an earlier one is made meanwhile.
pub async fn whoever_waits_wakes_for_the_earliest(backend: Backend) {
    let id = transaction(&backend, "t").await;
    assert_eq!(
        create(&backend, &id, 2, 0, now().plus(HOUR)).await,
        Created::New
    );
    let fires = queue(&backend, QueueName::Fires).clone();
    let waiter = tokio::spawn(async move {
        loop {
            let taken = fires.take(1, LONG).await.unwrap();
            if let Some(delivery) = taken.into_iter().next() {
                return (delivery, now());
            }
            fires.ready().await;
        }
    });
    pass(Duration::from_millis(100)).await;
    let due = now().plus(Duration::from_millis(200));
    assert_eq!(create(&backend, &id, 2, 1, due).await, Created::New);
    let (delivery, at) = must(waiter).await.unwrap();
    assert_eq!((delivery.since, at >= due), (due, true));
}

/// Many that are due at one instant all fire, each once.
pub async fn many_that_are_due_together_fire_once_each(backend: Backend) {
    let id = transaction(&backend, "t").await;
    let due = now().plus(Duration::from_millis(100));
    let schedules = (0..300).map(|seq| {
        (
            id.clone(),
            Schedule {
                attempt: 2,
                seq,
                fire_at: due,
            },
        )
    });
    let created = backend.scheduler().create(schedules.collect()).await;
    assert!(created.into_iter().all(|it| matches!(it, Ok(Created::New))));
    let fires = queue(&backend, QueueName::Fires);
    let taken = take(&**fires, 300, LONG).await;
    let mut seqs: Vec<u32> = taken
        .iter()
        .map(|delivery| match delivery.message {
            Message::Fire { seq, .. } => seq,
            _ => u32::MAX,
        })
        .collect();
    seqs.sort_unstable();
    assert_eq!(seqs, (0..300).collect::<Vec<_>>());
    assert!(is_empty(&**fires).await);
}
