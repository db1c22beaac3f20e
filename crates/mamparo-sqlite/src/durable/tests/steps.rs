//! Whole steps, through the handlers that production runs.

use std::time::Duration;

use mamparo_durable::backend::{Committed, Message, PostponeDue, QueueName, Step};
use mamparo_durable::handler::{FireHandler, Settlement};
use mamparo_durable::machine::{Answer, Cause, Input, Note, Outcome, State, Utc};
use tower::{Service, ServiceExt};

use super::support::{Disk, LEASE, begin, defer, id, new, refused, step, take};

const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn a_refusal_becomes_a_request_hours_later_and_a_success_in_the_end() {
    let disk = Disk::new();
    let backend = disk.open();
    let runner = disk.runner(&backend);
    begin(&runner, "pay-a").await;
    let answer = Answer::new(1, 0, Outcome::Refused).with_reason("CANCELLED");
    let answers = backend.queue(QueueName::Answers);
    let message = Message::Answer {
        id: id("pay-a"),
        answer,
    };
    answers.publish(vec![message]).await.unwrap();
    let delivery = take(&backend, QueueName::Answers).await.remove(0);
    let Message::Answer { answer, .. } = delivery.message else {
        panic!("an answer")
    };
    let receipt = Some(delivery.receipt);
    let handled = runner
        .handle(&id("pay-a"), |_| Input::Answer(answer), receipt)
        .await;
    assert_eq!(
        handled.unwrap().settlement,
        Settlement::Acknowledged,
        "in the same commit"
    );
    assert_eq!(answers.depth().await.unwrap().taken, 0);

    // Another process takes over.
    drop((backend, runner));
    let backend = disk.open();
    let runner = disk.runner(&backend);
    let due = runner.load(&id("pay-a")).await.unwrap().unwrap();
    let due = due.progress.next_fire_at.unwrap();
    assert!(take(&backend, QueueName::Fires).await.is_empty());
    disk.hands
        .turn(due.since(disk.hands.now()) - Duration::from_millis(1));
    assert!(
        take(&backend, QueueName::Fires).await.is_empty(),
        "never early"
    );
    disk.hands.turn(Duration::from_millis(1));
    let fire = take(&backend, QueueName::Fires).await.remove(0);
    assert_eq!(fire.since, due);
    let mut handler = FireHandler::new(runner.clone(), ());
    let handled = handler.ready().await.unwrap().call(fire).await.unwrap();
    assert_eq!(handled.note, Note::Applied);

    let request = take(&backend, QueueName::Requests).await.remove(0);
    let Message::Request(request) = request.message else {
        panic!("a request")
    };
    assert_eq!(
        (request.key().as_str(), &request.body[..]),
        ("pay-a#2", &b"pay pay-a"[..])
    );
    assert_eq!(request.trace, new(&runner, "pay-a").record.terms.trace);
    let success = Input::Answer(Answer::new(2, 0, Outcome::Success));
    runner.run(&id("pay-a"), success).await.unwrap();

    let history = backend.store().history(id("pay-a"), 0, 100).await.unwrap();
    let causes: Vec<_> = history.iter().map(|event| event.cause).collect();
    let expected = [
        Cause::Begun,
        Cause::Refused,
        Cause::Confirmed,
        Cause::Claimed,
        Cause::Published,
        Cause::Succeeded,
    ];
    assert_eq!(causes, expected);
    assert_eq!(history[1].reason, Some("CANCELLED".into()));
    let record = runner.load(&id("pay-a")).await.unwrap().unwrap();
    assert_eq!(record.progress.state, State::Succeeded);
}

#[tokio::test]
async fn steps_that_come_together_are_done_each_wholly_or_not_at_all() {
    let disk = Disk::new();
    let backend = disk.open();
    let runner = disk.runner(&backend);
    for name in ["fits", "stale"] {
        begin(&runner, name).await;
    }
    let load = async |name| runner.load(&id(name)).await.unwrap().unwrap();
    let stale = step(&load("stale").await, refused(1), disk.hands.now());
    runner
        .run(&id("stale"), Input::Resolve { reason: None })
        .await
        .unwrap();
    let fits = step(&load("fits").await, refused(1), disk.hands.now());
    let unknown = Step::new(id("unknown"));
    let outbox = backend.outbox().unwrap();
    let mut done = outbox.commit(vec![stale, unknown, fits]).await.into_iter();
    let mut next = || done.next().unwrap().unwrap();
    let Committed::Missed(Some(there)) = next() else {
        panic!("a miss")
    };
    assert_eq!(there.progress.state, State::Succeeded);
    assert_eq!(next(), Committed::Missed(None));
    assert_eq!(next(), Committed::Applied { conflict: false });
    assert_eq!(
        backend.queue(QueueName::Fires).depth().await.unwrap().later,
        1
    );
    assert_eq!(
        backend
            .store()
            .history(id("stale"), 0, 9)
            .await
            .unwrap()
            .len(),
        2
    );
}

/// The breaker moves what is due: one transition each, as if each had been postponed alone.
#[tokio::test]
async fn what_waits_for_a_dependency_is_postponed_together() {
    let disk = Disk::new();
    let backend = disk.open();
    let runner = disk.runner(&backend);
    for number in 0..300 {
        defer(&runner, &format!("t-{number}x")).await;
    }
    disk.hands.turn(3 * HOUR);
    // One is with a handler, one has no postponement left.
    let taken = backend
        .queue(QueueName::Fires)
        .take(1, LEASE)
        .await
        .unwrap();
    let spent = "UPDATE mamparo_durable SET postponements = max_postponements WHERE id = 't-7x'";
    disk.raw().execute(spent, []).unwrap();
    let now = disk.hands.now();
    let until = now.plus(HOUR);
    let due = PostponeDue::new("psp".into(), now, until, HOUR, u64::MAX);
    let outbox = backend.outbox().unwrap();
    let mut others = due.clone();
    others.dependency = "other".into();
    assert_eq!(outbox.postpone(others).await.unwrap(), 0);
    assert_eq!(outbox.postpone(due.clone()).await.unwrap(), 299);
    assert_eq!(outbox.postpone(due).await.unwrap(), 0, "they are later now");

    let moved = taken[0].message.id().clone();
    let record = runner.load(&moved).await.unwrap().unwrap();
    assert_eq!(
        (record.progress.schedule_seq, record.progress.postponements),
        (1, 1)
    );
    let fire_at = record.progress.next_fire_at.unwrap();
    assert!((until..=until.plus(HOUR)).contains(&fire_at));
    let last = backend
        .store()
        .history(moved, 0, 9)
        .await
        .unwrap()
        .pop()
        .unwrap();
    assert_eq!(
        (last.cause, last.fire_at),
        (Cause::Postponed, Some(fire_at))
    );
    let fires = backend.queue(QueueName::Fires).depth().await.unwrap();
    assert_eq!((fires.ready, fires.later, fires.taken), (1, 299, 1));
    disk.hands.turn(2 * HOUR);
    let mut handler = FireHandler::new(runner.clone(), ());
    let (mut applied, mut obsolete) = (0, 0);
    for _ in 0..4 {
        for fire in take(&backend, QueueName::Fires).await {
            let receipt = fire.receipt.clone();
            let handled = handler.ready().await.unwrap().call(fire).await.unwrap();
            match handled.note {
                Note::Applied => applied += 1,
                _ => obsolete += 1,
            }
            backend
                .queue(QueueName::Fires)
                .acknowledge(vec![receipt])
                .await
                .unwrap();
        }
    }
    assert_eq!(
        (applied, obsolete),
        (300, 1),
        "the old fire of the one that was taken"
    );
}

#[tokio::test]
async fn a_transaction_at_its_end_is_counted_and_never_changes() {
    let disk = Disk::new();
    let backend = disk.open();
    let runner = disk.runner(&backend);
    for name in ["a", "b", "c"] {
        defer(&runner, name).await;
    }
    runner
        .run(&id("a"), Input::Resolve { reason: None })
        .await
        .unwrap();
    let store = backend.store();
    let record = runner.load(&id("a")).await.unwrap().unwrap();
    let mut back = step(
        &runner.load(&id("b")).await.unwrap().unwrap(),
        Input::Resolve { reason: None },
        Utc::MIN,
    );
    let mut write = back.writes.remove(0);
    write.expect = record.progress.expect();
    let written = store.write(vec![(id("a"), write)]).await.remove(0).unwrap();
    assert_eq!(
        written,
        mamparo_durable::backend::Written::Missed(Some(record))
    );
    let census = store.census(disk.hands.now()).await.unwrap();
    let counts: Vec<_> = census
        .counts
        .iter()
        .map(|count| (count.state, count.attempt, count.transactions))
        .collect();
    assert_eq!(counts, [(State::Scheduled, 1, 2), (State::Succeeded, 1, 1)]);
}
