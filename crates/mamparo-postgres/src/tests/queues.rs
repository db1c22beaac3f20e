use std::collections::HashSet;
use std::time::Duration;

use mamparo_durable::backend::{Message, QueueName, Store as _};
use mamparo_durable::machine::{Answer, Outcome, TransactionId};

use sqlx::Connection as _;

use super::support::{connection, fresh, fresh_with, id, now, sql, waiting};

const LEASE: Duration = Duration::from_secs(60);

/// Not so short that a busy machine lets it pass before it is extended.
const SHORT: Duration = Duration::from_secs(1);

fn answer(name: &str) -> Message {
    let answer = Answer::new(1, 0, Outcome::Refused)
        .with_reason("CANCELLED")
        .not_before(now());
    Message::Answer {
        id: id(name),
        answer,
    }
}

/// Takes and acknowledges until there is nothing left.
async fn take_all(postgres: crate::Postgres) -> Vec<TransactionId> {
    let fires = postgres.queue(QueueName::Fires);
    let mut taken = Vec::new();
    loop {
        let deliveries = fires.take(256, LEASE).await.unwrap();
        if deliveries.is_empty() {
            return taken;
        }
        taken.extend(
            deliveries
                .iter()
                .map(|delivery| delivery.message.id().clone()),
        );
        let receipts = deliveries.into_iter().map(|delivery| delivery.receipt);
        fires.acknowledge(receipts.collect()).await.unwrap();
    }
}

#[tokio::test]
async fn two_engines_take_ten_thousand_that_are_due_at_once_each_once() {
    let one = fresh().await;
    let other = one.beside().await;
    waiting(
        &one,
        (0..10_000).map(|number| format!("t{number:05}")),
        now(),
    )
    .await;
    let (one_s, others) = (
        tokio::spawn(take_all(one.clone())),
        tokio::spawn(take_all(other)),
    );
    let mut all_taken = one_s.await.unwrap();
    all_taken.extend(others.await.unwrap());
    assert_eq!(all_taken.len(), 10_000);
    assert_eq!(all_taken.into_iter().collect::<HashSet<_>>().len(), 10_000);
    assert_eq!(
        one.queue(QueueName::Fires).depth().await.unwrap(),
        Default::default()
    );
    assert_eq!(
        one.census(now()).await.unwrap().counts[0].transactions,
        10_000
    );
}

#[tokio::test]
async fn a_lease_that_is_over_lets_another_take_it_and_its_first_taker_settles_nothing() {
    let postgres = fresh().await;
    let answers = postgres.queue(QueueName::Answers);
    answers.publish(vec![answer("a")]).await.unwrap();
    let first = answers
        .take(10, Duration::from_millis(50))
        .await
        .unwrap()
        .pop()
        .unwrap();
    assert_eq!(first.message.id(), &id("a"));
    assert!(answers.take(10, LEASE).await.unwrap().is_empty());
    tokio::time::sleep(Duration::from_millis(80)).await;
    // Over: it can't be held any longer.
    answers
        .extend(vec![first.receipt.clone()], LEASE)
        .await
        .unwrap();
    let second = answers.take(10, LEASE).await.unwrap().pop().unwrap();
    assert_eq!((first.number, second.number), (1, 2));
    answers
        .acknowledge(vec![first.receipt.clone()])
        .await
        .unwrap();
    answers
        .release(first.receipt.clone(), Duration::ZERO, true)
        .await
        .unwrap();
    answers.bury(first.receipt, "late".into()).await.unwrap();
    assert_eq!(answers.depth().await.unwrap().taken, 1);
    answers
        .release(second.receipt, Duration::ZERO, false)
        .await
        .unwrap();
    let third = answers.take(10, LEASE).await.unwrap().pop().unwrap();
    assert_eq!(
        third.number, 2,
        "a delivery that a shutdown ended does not count"
    );
    answers.acknowledge(vec![third.receipt]).await.unwrap();
    assert_eq!(answers.depth().await.unwrap(), Default::default());
}

#[tokio::test]
async fn what_is_delivered_too_often_or_cannot_be_read_is_buried_and_can_be_brought_back() {
    let postgres = fresh_with(|settings| settings.redelivery_limit(2)).await;
    let answers = postgres.queue(QueueName::Answers);
    answers
        .publish(vec![answer("a"), answer("b")])
        .await
        .unwrap();
    for number in 1..=2 {
        for delivery in answers.take(10, LEASE).await.unwrap() {
            assert_eq!(delivery.number, number);
            answers
                .release(delivery.receipt, Duration::ZERO, true)
                .await
                .unwrap();
        }
    }
    sql(
        &postgres,
        "UPDATE messages SET outcome = 'maybe', deliveries = 0 WHERE transaction_id = 'b'",
    )
    .await;
    assert!(answers.take(10, LEASE).await.unwrap().is_empty());
    let dead = answers.dead(None, 10).await.unwrap();
    let mut whys: Vec<_> = dead
        .iter()
        .map(|dead| (dead.why.as_str().to_owned(), dead.message.is_some()))
        .collect();
    whys.sort();
    let unread = "can't be read: its outcome is Some(\"maybe\")".to_owned();
    assert_eq!(
        whys,
        [(unread, false), ("delivered 2 times".to_owned(), true)]
    );
    let find = |readable| {
        dead.iter()
            .find(|dead| dead.message.is_some() == readable)
            .unwrap()
            .number
    };
    assert_eq!(
        answers
            .discard(vec![find(false)], "nobody knows".into())
            .await
            .unwrap(),
        1
    );
    assert_eq!(
        answers
            .discard(vec![find(false)], "nobody knows".into())
            .await
            .unwrap(),
        0
    );
    assert_eq!(answers.requeue(vec![find(true), 999]).await.unwrap(), 1);
    let back = answers.take(10, LEASE).await.unwrap().pop().unwrap();
    assert_eq!((back.number, back.message.id()), (1, &id("a")));
    let Message::Answer { answer, .. } = back.message else {
        panic!("an answer")
    };
    assert_eq!(
        (answer.outcome, answer.reason),
        (Outcome::Refused, Some("CANCELLED".into()))
    );
    assert_eq!(answers.depth().await.unwrap().dead, 0);
}

#[tokio::test]
async fn a_request_whose_transaction_is_gone_is_buried() {
    let postgres = fresh().await;
    waiting(&postgres, ["a".to_owned()].into_iter(), now()).await;
    let requests = postgres.queue(QueueName::Requests);
    let record = postgres
        .load(vec![id("a")])
        .await
        .pop()
        .unwrap()
        .unwrap()
        .unwrap();
    super::support::commit(&postgres, super::support::fired(&record)).await;
    sql(&postgres, "DELETE FROM transactions").await;
    assert!(requests.take(10, LEASE).await.unwrap().is_empty());
    let dead = requests.dead(None, 10).await.unwrap().pop().unwrap();
    assert_eq!(
        (dead.message, dead.why.as_str()),
        (None, "can't be read: its transaction is gone")
    );
}

#[tokio::test]
async fn a_lease_is_not_held_longer_by_waiting_for_who_settles() {
    let postgres = fresh().await;
    let answers = postgres.queue(QueueName::Answers);
    let messages = ["one", "other"].map(answer).to_vec();
    answers.publish(messages).await.unwrap();
    let taken = answers.take(2, SHORT).await.unwrap();
    let receipts: Vec<_> = taken.into_iter().map(|taken| taken.receipt).collect();
    let (one, other) = (receipts[0].clone(), receipts[1].clone());

    let mut settles = connection(&postgres).await;
    let mut transaction = settles.begin().await.unwrap();
    let settled = sqlx::query("DELETE FROM messages WHERE number = $1")
        .bind(i64::try_from(one.message).unwrap())
        .execute(&mut *transaction);
    settled.await.unwrap();
    let extended = tokio::time::timeout(Duration::from_secs(5), answers.extend(receipts, LEASE));
    extended.await.expect("it waits for nobody").unwrap();
    transaction.rollback().await.unwrap();

    tokio::time::sleep(SHORT * 2).await;
    let again = answers.take(2, LEASE).await.unwrap();
    let again: Vec<_> = again.iter().map(|taken| taken.receipt.message).collect();
    assert_eq!(
        again,
        [one.message],
        "the other is held, not {}",
        other.message
    );
}
