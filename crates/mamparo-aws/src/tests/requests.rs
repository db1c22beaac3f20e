//! How many requests a deferral and a fire take: docs/operating/aws says so.

use std::collections::BTreeMap;
use std::time::Duration;

use mamparo_durable::backend::{Backend, Message, NewTransaction, QueueName};
use mamparo_durable::handler::{Runner, Settlement};
use mamparo_durable::machine::{Answer, Fire, Input, Outcome, State};
use mamparo_testkit::private::PrivateMoto;

use super::resources;
use super::support::{LONG, id, take_one};
use crate::store::tests::support::{Ear, connect, make_tables, record};

type Counts = BTreeMap<String, usize>;

/// All but those of the relay, which looks now and then.
fn counts(ear: &Ear) -> Counts {
    let mut counts = ear.counts();
    counts.remove("Query");
    counts
}

fn expected(counts: &[(&str, usize)]) -> Counts {
    let counts = counts
        .iter()
        .map(|(name, count)| ((*name).to_owned(), *count));
    counts.collect()
}

async fn begin(backend: &Backend, name: &str) {
    let new = NewTransaction::new(record(name), &b"the request"[..]).unwrap();
    backend.store().begin(new).await.unwrap();
}

/// Takes the message and handles it; returns how many requests that took.
async fn handled(runner: &Runner, ear: &Ear, message: Message, input: Input) -> Counts {
    let id = message.id().clone();
    let queue = runner.backend().queue(message.queue());
    queue.publish(vec![message]).await.unwrap();
    // There before it is asked for, so that one request finds it.
    tokio::time::sleep(Duration::from_millis(50)).await;
    ear.forget();
    let taken = take_one(&**queue, LONG).await;
    let handled = runner
        .handle(&id, |_| input, Some(taken.receipt))
        .await
        .unwrap();
    assert_eq!(handled.settlement, Settlement::Acknowledged);
    counts(ear)
}

#[tokio::test]
async fn a_deferral_takes_three_requests_to_the_store_one_to_the_scheduler_and_two_to_the_queues() {
    let ear = Ear::default();
    let url = PrivateMoto::shared().await.url();
    let aws = connect(resources::settings(&url), &ear).await;
    resources::make(&aws).await;
    make_tables(&aws).await;
    let runner = Runner::builder(aws.backend().await.unwrap()).build();
    let mut deferred = Counts::new();
    // The first looks up addresses.
    for name in ["first", "second"] {
        begin(runner.backend(), name).await;
        let answer = Answer::new(1, 0, Outcome::Refused);
        let message = Message::Answer {
            id: id(name),
            answer: answer.clone(),
        };
        deferred = handled(&runner, &ear, message, Input::Answer(answer)).await;
        let loaded = runner.load(&id(name)).await.unwrap().unwrap();
        assert_eq!(loaded.progress.state, State::Scheduled);
    }
    assert_eq!(
        deferred,
        expected(&[
            ("ReceiveMessage", 1),
            ("GetItem", 1),
            ("TransactWriteItems", 1),
            ("POST schedule", 1),
            ("DeleteMessageBatch", 1),
            ("BatchWriteItem", 1),
        ])
    );
    let mut fired = Counts::new();
    for name in ["first", "second"] {
        let id = id(name);
        let (attempt, seq) = (2, 0);
        let message = Message::Fire { id, attempt, seq };
        fired = handled(&runner, &ear, message, Input::Fire(Fire::new(attempt, seq))).await;
    }
    assert_eq!(
        fired,
        expected(&[
            ("ReceiveMessage", 1),
            ("GetItem", 1),
            ("TransactWriteItems", 1),
            ("BatchGetItem", 1),
            ("SendMessageBatch", 1),
            ("DeleteMessageBatch", 1),
            ("BatchWriteItem", 1),
        ])
    );
    let requests = runner.backend().queue(QueueName::Requests);
    assert_eq!(requests.depth().await.unwrap().ready, 2);
}
