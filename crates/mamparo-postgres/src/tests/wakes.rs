use std::time::Duration;

use mamparo_core::clock;
use mamparo_durable::backend::{Message, QueueName, Scheduler as _};
use mamparo_durable::machine::{Answer, Outcome, Schedule};

use super::support::{fresh_with, id, now, sql};
use crate::Postgres;

fn answer() -> Message {
    Message::Answer {
        id: id("a"),
        answer: Answer::new(1, 0, Outcome::Success),
    }
}

/// One that a test waits for in vain unless it is woken.
async fn patient() -> Postgres {
    fresh_with(|settings| settings.poll(Duration::from_secs(60))).await
}

/// Waits until someone waits for that queue, as it may take a moment; returns how long the wait was after `then`.
async fn woken(waiting: &Postgres, queue: QueueName, then: impl Future<Output = ()>) -> Duration {
    let queue = waiting.queue(queue);
    let waiting = tokio::spawn(async move { queue.ready().await });
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(!waiting.is_finished());
    let start = clock::now();
    then.await;
    waiting.await.unwrap();
    start.elapsed()
}

#[tokio::test]
async fn who_waits_is_woken_by_what_this_process_or_another_publishes() {
    let one = patient().await;
    let other = one.beside().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    for publisher in [&one, &other] {
        let publish = async {
            publisher
                .queue(QueueName::Answers)
                .publish(vec![answer()])
                .await
                .unwrap()
        };
        let took = woken(&one, QueueName::Answers, publish).await;
        assert!(took < Duration::from_secs(10), "{took:?}");
        for delivery in one
            .queue(QueueName::Answers)
            .take(9, Duration::from_secs(1))
            .await
            .unwrap()
        {
            one.queue(QueueName::Answers)
                .acknowledge(vec![delivery.receipt])
                .await
                .unwrap();
        }
    }
}

#[tokio::test]
async fn who_sleeps_until_the_next_instant_is_woken_for_an_earlier_one_and_never_early() {
    let one = patient().await;
    let other = one.beside().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let fires = one.queue(QueueName::Fires);
    let make = async |name: &str, wait| {
        let fire_at = now().plus(wait);
        other
            .create(vec![(
                id(name),
                Schedule {
                    attempt: 2,
                    seq: 0,
                    fire_at,
                },
            )])
            .await;
        fire_at
    };
    make("late", Duration::from_secs(3600)).await;
    let waiting = tokio::spawn(async move {
        loop {
            let taken = fires.take(10, Duration::from_secs(60)).await.unwrap();
            if let Some(fire) = taken.into_iter().next() {
                return (fire, now());
            }
            fires.ready().await;
        }
    });
    tokio::time::sleep(Duration::from_millis(500)).await;
    let due = make("soon", Duration::from_millis(1500)).await;
    let (fire, at) = waiting.await.unwrap();
    assert_eq!((fire.message.id(), fire.since), (&id("soon"), due));
    assert!(
        at >= due && at.since(due) < Duration::from_secs(10),
        "{due} {at}"
    );
}

#[tokio::test]
async fn what_is_not_notified_is_found_by_the_poll() {
    let postgres = fresh_with(|settings| settings.poll(Duration::from_millis(700))).await;
    let insert =
        "INSERT INTO messages (queue, transaction_id, attempt, seq, outcome, since, ready_at)
        VALUES ('answers', 'a', 1, 0, 'success', 0, 0)";
    let answers = postgres.queue(QueueName::Answers);
    let waiting = tokio::spawn(async move {
        loop {
            if !answers
                .take(10, Duration::from_secs(60))
                .await
                .unwrap()
                .is_empty()
            {
                return;
            }
            answers.ready().await;
        }
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    sql(&postgres, insert).await;
    tokio::time::timeout(Duration::from_secs(10), waiting)
        .await
        .unwrap()
        .unwrap();
}
