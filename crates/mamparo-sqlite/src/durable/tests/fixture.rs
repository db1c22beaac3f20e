//! A file that the first version wrote; every later one opens it.

use std::path::PathBuf;
use std::time::Duration;

use mamparo_durable::backend::{Backend, Delivery, Message, QueueName};
use mamparo_durable::handler::{FireHandler, Runner};
use mamparo_durable::machine::{Answer, Cause, Input, Outcome, State};
use tower::{Service, ServiceExt};

use super::support::{Disk, LEASE, begin, defer, id, refused, take};

const DAY: Duration = Duration::from_secs(86_400);

fn fixture() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/durable/tests/version-1.db")
}

/// One in each state that a file can hold, a message in each queue, a dead letter in sight and one that was discarded.
async fn fill(disk: &Disk, backend: &Backend, runner: &Runner) {
    for name in ["in-flight", "done"] {
        begin(runner, name).await;
    }
    for name in ["sent", "dead", "discarded", "waits"] {
        defer(runner, name).await;
        disk.hands.turn(Duration::from_secs(1));
    }
    let success = Input::Answer(Answer::new(1, 0, Outcome::Success));
    runner.run(&id("done"), success).await.unwrap();
    disk.hands.turn(DAY);
    defer(runner, "later").await;
    let fires = backend.queue(QueueName::Fires);
    let mut taken = take(backend, QueueName::Fires).await;
    let mut of = |name| {
        let of = |fire: &Delivery| fire.message.id() == &id(name);
        taken.remove(taken.iter().position(of).unwrap())
    };
    let mut handler = FireHandler::new(runner.clone(), ());
    let sent = handler.ready().await.unwrap().call(of("sent"));
    sent.await.unwrap();
    for name in ["dead", "discarded"] {
        let receipt = of(name).receipt;
        fires.bury(receipt, name.into()).await.unwrap();
    }
    let number = fires.dead(None, 9).await.unwrap()[1].number;
    fires.discard(vec![number], "a test".into()).await.unwrap();
    let waits = of("waits").receipt;
    fires.release(waits, Duration::ZERO, true).await.unwrap();
    let answer = Answer::new(1, 0, Outcome::Technical).with_reason("reset");
    let answer = Message::Answer {
        id: id("in-flight"),
        answer: answer.not_before(disk.hands.now()),
    };
    backend
        .queue(QueueName::Answers)
        .publish(vec![answer])
        .await
        .unwrap();
}

#[tokio::test]
#[ignore = "writes the fixture of a schema that was not released yet"]
async fn write_the_fixture() {
    let disk = Disk::new();
    let file = disk.builder().open().unwrap();
    let backend = file.backend();
    fill(&disk, &backend, &disk.runner(&backend)).await;
    let _gone = std::fs::remove_file(fixture());
    file.back_up(fixture()).await.unwrap();
}

#[tokio::test]
async fn a_file_of_the_first_version_opens_and_goes_on() {
    let disk = Disk::new();
    std::fs::copy(fixture(), disk.path()).unwrap();
    let backend = disk.open();
    let runner = disk.runner(&backend);
    disk.hands.turn(DAY + Duration::from_secs(4));
    let state = async |name| {
        let record = runner.load(&id(name)).await.unwrap().unwrap();
        assert!(record.progress.is_sound(), "{name}");
        record.progress.state
    };
    assert_eq!(state("in-flight").await, State::InFlight);
    assert_eq!(state("sent").await, State::InFlight);
    assert_eq!(state("done").await, State::Succeeded);
    for name in ["waits", "dead", "discarded", "later"] {
        assert_eq!(state(name).await, State::Scheduled);
    }
    let history = backend.store().history(id("sent"), 0, 9).await.unwrap();
    assert_eq!((history.len(), history[1].cause), (5, Cause::Refused));

    let answers = take(&backend, QueueName::Answers).await;
    assert_eq!(answers[0].message.id(), &id("in-flight"));
    let [request] = &take(&backend, QueueName::Requests).await[..] else {
        panic!("one request")
    };
    let Message::Request(request) = &request.message else {
        panic!("a request")
    };
    assert_eq!(
        (&request.id, &request.body[..]),
        (&id("sent"), &b"pay sent"[..])
    );
    let fires = backend.queue(QueueName::Fires);
    let dead = fires.dead(None, 9).await.unwrap();
    assert_eq!((dead.len(), dead[0].why.as_str()), (1, "dead"));
    assert_eq!(fires.requeue(vec![dead[0].number]).await.unwrap(), 1);
    disk.hands.turn(Duration::from_secs(5 * 3600));
    assert_eq!(
        fires.take(9, LEASE).await.unwrap().len(),
        3,
        "waits, later, dead"
    );
    defer(&runner, "new").await;
    runner.run(&id("in-flight"), refused(1)).await.unwrap();
}
