//! A queue of the engine's: what the suite of all backends, run in `tests/`, does not see.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use lapin::BasicProperties;
use lapin::options::{BasicGetOptions, BasicRejectOptions};
use mamparo_core::{BoxError, clock};
use mamparo_durable::backend::{self, Delivery, Message, Queue, QueueName, Request};
use mamparo_durable::engine::{Engine, Transaction};
use mamparo_durable::machine::{Answer, Outcome, State, Terms, TransactionId, Utc};
use mamparo_durable::memory::Memory;
use mamparo_durable::policy::{Policies, Policy, Wait};
use mamparo_testkit::private::PrivateRabbit;
use mamparo_testkit::proxy::{Fault, FaultProxy};
use tokio::task::JoinSet;
use tokio::time::sleep;
use tower::service_fn;

use super::support::{look, must, patient, publisher, queue, settings, take};
use crate::message::header;
use crate::{RabbitQueue, RabbitQueueBuilder, Settings, Topology, Trouble, headers};

const LONG: Duration = Duration::from_secs(60);
const SOON: Duration = Duration::from_millis(200);

/// A queue that was declared is on the broker's disk after so long: killed before, it may come back with no leader.
const ON_DISK: Duration = Duration::from_secs(5);

fn answers_at(settings: Settings, name: &str) -> RabbitQueueBuilder {
    RabbitQueue::builder(settings, QueueName::Answers, name).delays([SOON])
}

async fn answers() -> RabbitQueue {
    let queue = answers_at(settings().await, &queue()).build().unwrap();
    queue.declare().await.unwrap();
    queue
}

fn answer(name: &str) -> Message {
    Message::Answer {
        id: TransactionId::new(name).unwrap(),
        answer: Answer::new(1, 0, Outcome::Success),
    }
}

async fn publish(queue: &RabbitQueue, names: &[&str]) {
    let messages = names.iter().map(|name| answer(name)).collect();
    queue.publish(messages).await.unwrap();
}

/// Takes one that must come.
async fn take_one(queue: &RabbitQueue) -> Delivery {
    must(async {
        loop {
            if let Some(taken) = queue.take(1, LONG).await.unwrap().pop() {
                return taken;
            }
            sleep(Duration::from_millis(5)).await;
        }
    })
    .await
}

#[tokio::test]
async fn an_engines_queues_that_exist_otherwise_are_named_with_what_differs() {
    let name = queue();
    publisher(&Topology::builder(&name).delay(SOON).build().unwrap()).await;
    let queue = answers_at(settings().await, &name).build().unwrap();
    let error = queue.declare().await.unwrap_err();
    assert_eq!(error.trouble(), Trouble::Mismatch);
    let said = queue.take(1, LONG).await.unwrap_err();
    assert_eq!(said.trouble(), backend::Trouble::Incompatible);
    let part = format!(
        "declaring the queue {name}: PRECONDITION_FAILED - inequivalent arg 'x-delivery-limit'"
    );
    assert!(said.to_string().contains(&part), "{said}");
}

#[test]
fn an_engines_queue_with_nonsense_settings_is_refused() {
    let settings = Settings::builder("amqp://localhost").build().unwrap();
    let refused = |builder: RabbitQueueBuilder| builder.build().unwrap_err().setting().to_owned();
    let queue = || answers_at(settings.clone(), "q");
    assert_eq!(refused(queue().prefetch(0)), "prefetch");
    assert_eq!(refused(queue().redelivery_limit(0)), "redelivery_limit");
    assert_eq!(refused(queue().redelivery_limit(101)), "redelivery_limit");
    assert_eq!(refused(queue().delays([])), "delays");
}

#[tokio::test]
async fn a_broker_that_is_away_is_transient_for_an_engine() {
    let settings = Settings::builder("amqp://guest:guest@127.0.0.1:1/%2f").build();
    let queue = answers_at(settings.unwrap(), "q").build().unwrap();
    assert!(queue.take(1, LONG).await.unwrap_err().is_transient());
    assert!(queue.depth().await.unwrap_err().is_transient());
    must(queue.ready()).await;
}

#[tokio::test]
async fn what_was_taken_over_a_lost_connection_is_delivered_again_and_not_settled_by_the_old_lease()
{
    let server = PrivateRabbit::shared().await;
    let proxy = FaultProxy::start(server.address()).await;
    let name = queue();
    let through = answers_at(patient(&server.url_at(proxy.address())), &name);
    let through = through.build().unwrap();
    let beside = answers_at(settings().await, &name).build().unwrap();
    beside.declare().await.unwrap();
    publish(&beside, &["a"]).await;
    let stale = take_one(&through).await;
    assert_eq!(stale.number, 1);
    proxy.set(Fault::ResetAfter(0)).await;
    let lost = through.take(1, LONG).await.unwrap_err();
    assert!(lost.is_transient(), "{lost}");
    let settled = through.acknowledge(vec![stale.receipt.clone()]).await;
    settled.unwrap();
    proxy.set(Fault::None).await;
    let again = take_one(&through).await;
    assert_eq!((again.message, again.number), (stale.message, 2));
    through.acknowledge(vec![stale.receipt]).await.unwrap();
    assert_eq!(through.depth().await.unwrap().taken, 1);
}

#[tokio::test]
async fn two_engines_share_a_queue_and_one_gets_what_the_other_let_go() {
    let name = queue();
    let engine = |settings| answers_at(settings, &name).prefetch(2).build().unwrap();
    let (one, other) = (engine(settings().await), engine(settings().await));
    one.declare().await.unwrap();
    publish(&one, &["a", "b", "c", "d"]).await;
    let mine = one.take(9, LONG).await.unwrap();
    let theirs = other.take(9, SOON).await.unwrap();
    assert_eq!((mine.len(), theirs.len()), (2, 2));
    let receipts = mine.into_iter().map(|delivery| delivery.receipt);
    one.acknowledge(receipts.collect()).await.unwrap();
    let let_go = take_one(&one).await;
    assert_eq!(let_go.number, 2, "the lease of the other is over");
}

#[tokio::test]
async fn a_wait_that_is_longer_than_the_longest_delay_is_waited_all_the_same() {
    let queue = answers().await;
    publish(&queue, &["a"]).await;
    let (began, first) = (clock::now(), take_one(&queue).await);
    let wait = 3 * SOON + SOON / 2;
    queue.release(first.receipt, wait, true).await.unwrap();
    assert_eq!(queue.depth().await.unwrap().later, 1);
    let again = take_one(&queue).await;
    assert!(clock::now() - began >= wait);
    assert_eq!(again.number, 2, "the rounds between count for nothing");
    assert_eq!(again.since, first.since);
}

#[tokio::test]
async fn what_others_publish_is_read_and_what_cannot_be_read_is_buried() {
    let queue = answers().await;
    let publisher = publisher(queue.topology()).await;
    let json = r#"{"transaction_id":"t","attempt":2,"seq":1,"outcome":"declined"}"#;
    for body in [json, "no JSON"] {
        let message = crate::Message::new(body);
        let name = queue.topology().queue();
        publisher.publish("", name, message).await.unwrap();
    }
    let Message::Answer { id, answer } = take_one(&queue).await.message else {
        panic!("no answer");
    };
    assert_eq!((id.as_str(), answer.attempt), ("t", 2));
    assert!(queue.take(1, LONG).await.unwrap().is_empty());
    let dead = queue.dead(None, 9).await.unwrap();
    assert_eq!((dead.len(), &dead[0].message), (1, &None));
    let why = dead[0].why.as_str();
    assert!(why.starts_with("can't be read: "), "{why}");
}

#[tokio::test]
async fn a_dependency_that_listens_to_rabbitmq_gets_a_request_with_all_that_it_needs() {
    let queue = RabbitQueue::builder(settings().await, QueueName::Requests, queue());
    let queue = queue.build().unwrap();
    let id = TransactionId::new("payment-1").unwrap();
    let mut terms = Terms::new(id, "payment", &Policy::default(), Utc::MIN);
    terms.trace = Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into());
    let request = Request::new(&terms, 2, 1, Bytes::from("5 EUR"));
    queue
        .publish(vec![Message::Request(request)])
        .await
        .unwrap();
    let (_connection, channel) = look().await;
    let (properties, body) = take(&channel, queue.topology().queue()).await;
    assert_eq!(body, b"5 EUR");
    let key = properties.message_id().as_ref().map(|id| id.as_str());
    assert_eq!(key, Some("payment-1#2"));
    let said = |name| header(&properties, name);
    assert_eq!(said(headers::TRANSACTION), Some("payment-1"));
    assert_eq!(
        said(headers::TRACEPARENT),
        terms.trace.as_ref().map(|it| it.as_str())
    );
}

#[tokio::test]
async fn a_letter_that_the_broker_buried_has_a_number_that_stays() {
    let queue = answers().await;
    publish(&queue, &["a"]).await;
    let (_connection, channel) = look().await;
    let taken = must(async {
        loop {
            let got =
                channel.basic_get(queue.topology().queue().into(), BasicGetOptions::default());
            if let Some(got) = got.await.unwrap() {
                return got;
            }
        }
    });
    let reject = BasicRejectOptions { requeue: false };
    taken.await.delivery.acker.reject(reject).await.unwrap();
    let dead = must(async {
        loop {
            let dead = queue.dead(None, 9).await.unwrap();
            if !dead.is_empty() {
                return dead;
            }
        }
    })
    .await;
    assert_eq!(queue.dead(None, 9).await.unwrap(), dead);
    let age = Utc::of(&clock::SystemClock).since(dead[0].buried_at);
    assert!(age < LONG, "{age:?}");
    assert_eq!(dead[0].why.as_str(), "rejected");
    assert_eq!(queue.requeue(vec![dead[0].number]).await.unwrap(), 1);
    assert_eq!(take_one(&queue).await.message, answer("a"));
}

#[tokio::test]
async fn a_requeue_that_nobody_waits_for_loses_and_doubles_nothing() {
    let queue = answers().await;
    let names: Vec<String> = (0..20).map(|number| format!("t{number}")).collect();
    let all = names.iter().map(|name| answer(name)).collect();
    queue.publish(all).await.unwrap();
    for _ in 0..20 {
        let taken = take_one(&queue).await;
        queue.bury(taken.receipt, "no".into()).await.unwrap();
    }
    let dead = queue.dead(None, 99).await.unwrap();
    let numbers: Vec<u64> = dead.iter().map(|letter| letter.number).collect();
    assert_eq!(numbers.len(), 20);
    let interrupted = queue.requeue(numbers.clone());
    let cut = tokio::time::timeout(Duration::from_millis(30), interrupted).await;
    drop(cut);
    queue.requeue(numbers).await.unwrap();
    let back: Vec<Delivery> = queue.take(99, LONG).await.unwrap();
    let different: HashSet<String> = back
        .iter()
        .map(|delivery| delivery.message.id().to_string())
        .collect();
    assert_eq!((back.len(), different.len()), (20, 20));
    assert_eq!(queue.depth().await.unwrap().dead, 0);
}

#[tokio::test]
async fn what_is_discarded_is_noted_with_the_reason() {
    let queue = answers().await;
    publish(&queue, &["a"]).await;
    let taken = take_one(&queue).await;
    queue.bury(taken.receipt, "why".into()).await.unwrap();
    let number = queue.dead(None, 1).await.unwrap()[0].number;
    let discarded = queue.discard(vec![number], "nobody needs it".into()).await;
    assert_eq!(discarded.unwrap(), 1);
    let (_connection, channel) = look().await;
    let kept = format!("{}.discarded", queue.topology().queue());
    let (properties, body): (BasicProperties, _) = take(&channel, &kept).await;
    assert_eq!(body, answer("a").to_json().as_bytes());
    let said = |name| header(&properties, name);
    assert_eq!(said(headers::DISCARD_REASON), Some("nobody needs it"));
    assert_eq!(said(headers::DEAD_DETAIL), Some("why"));
}

/// The dependency: takes requests from the broker, and answers there.
async fn depend(requests: RabbitQueue, answers: Arc<RabbitQueue>) {
    loop {
        let Delivery {
            message, receipt, ..
        } = take_one(&requests).await;
        let Message::Request(request) = message else {
            panic!("no request");
        };
        let said = match request.attempt {
            1 => Outcome::Refused,
            _ => Outcome::Success,
        };
        let answer = request.answer(said);
        let answer = Message::Answer {
            id: request.id,
            answer,
        };
        answers.publish(vec![answer]).await.unwrap();
        requests.acknowledge(vec![receipt]).await.unwrap();
    }
}

#[tokio::test]
async fn an_engines_sender_is_the_relay_to_a_dependency_that_listens_to_the_broker() {
    let wait = Wait::builder().base(SOON).cap(SOON).build().unwrap();
    let policy = Policy::builder().business(wait).build().unwrap();
    let whole_steps = Memory::new(clock::SystemClock).backend();
    let engine = Engine::builder(whole_steps).policies(Policies::new(policy));
    let engine = engine.build().unwrap();
    let (settings, name) = (settings().await, queue());
    let requests = || RabbitQueue::builder(settings.clone(), QueueName::Requests, &name);
    let to = Arc::new(requests().build().unwrap());
    let answers = Arc::new(answers().await);
    let mut others = JoinSet::new();
    others.spawn(depend(requests().build().unwrap(), Arc::clone(&answers)));
    let running = engine.run(service_fn(move |request: Request| {
        let to = Arc::clone(&to);
        async move {
            to.publish(vec![Message::Request(request)]).await?;
            Ok::<_, BoxError>(None)
        }
    }));
    let id = TransactionId::new("payment-1").unwrap();
    let begun = Transaction::new(id.clone(), "payment", "5 EUR");
    engine.begin(begun).await.unwrap();
    for _ in 0..2 {
        let taken = take_one(&answers).await;
        let Message::Answer { id, answer } = taken.message else {
            panic!("no answer");
        };
        engine.answer(&id, answer).await.unwrap();
        answers.acknowledge(vec![taken.receipt]).await.unwrap();
    }
    let ended = engine.load(&id).await.unwrap().unwrap().progress;
    assert_eq!((ended.state, ended.attempt_current), (State::Succeeded, 2));
    running.stop().await.unwrap();
}

/// Works as an engine does until all have come, some of them not at the first time.
async fn work(queue: Arc<RabbitQueue>, done: Arc<Mutex<HashSet<String>>>, all: usize) {
    while done.lock().unwrap().len() < all {
        let Ok(taken) = queue.take(16, Duration::from_secs(5)).await else {
            sleep(Duration::from_millis(50)).await;
            continue;
        };
        for delivery in taken {
            let receipt = delivery.receipt;
            if delivery.number == 1 && fastrand::u8(..) < 50 {
                drop(queue.release(receipt, SOON, true).await);
            } else if queue.acknowledge(vec![receipt]).await.is_ok() {
                done.lock()
                    .unwrap()
                    .insert(delivery.message.id().to_string());
            }
        }
        drop(tokio::time::timeout(SOON, queue.ready()).await);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_that_is_killed_under_load_loses_nothing_of_an_engines() {
    const ALL: usize = 600;
    let server = PrivateRabbit::start().await;
    let engine = || {
        let queue = answers_at(patient(&server.url()), "q").redelivery_limit(100);
        Arc::new(queue.build().unwrap())
    };
    let engines = [engine(), engine()];
    engines[0].declare().await.unwrap();
    sleep(ON_DISK).await;
    let done = Arc::<Mutex<HashSet<String>>>::default();
    let work = engines
        .each_ref()
        .map(|queue| tokio::spawn(work(Arc::clone(queue), Arc::clone(&done), ALL)));
    let publisher = Arc::clone(&engines[1]);
    let published = tokio::spawn(async move {
        for batch in 0..ALL / 10 {
            let names = (0..10).map(|number| format!("t{batch}-{number}"));
            let batch: Vec<_> = names.map(|name| answer(&name)).collect();
            // What is not confirmed is published again.
            while publisher.publish(batch.clone()).await.is_err() {}
        }
    });
    must(async {
        while done.lock().unwrap().len() < ALL / 4 {
            sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    server.kill().await;
    server.restart().await;
    must(published).await.unwrap();
    for worker in work {
        must(worker).await.unwrap();
    }
    assert_eq!(engines[0].depth().await.unwrap().dead, 0);
}
