use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::time::Duration;

use mamparo_core::{BoxError, clock};

use super::support::{Heard, MINUTE, Paused, Sent, ended, on, payment, policies, stored};
use crate::backend::{
    Backend, BackendError, BoxFuture, DeadLetter, Delivery, Depth, Message, Queue, QueueName,
    Receipt, Request, Trouble,
};
use crate::engine::{Engine, Task};
use crate::machine::{End, Label, Outcome, State};
use crate::memory::Memory;

/// A queue that fails or panics when it is asked.
#[derive(Debug)]
struct Sick {
    inner: Arc<dyn Queue>,
    illness: Arc<AtomicU8>,
    asked: Arc<AtomicU32>,
}

const WELL: u8 = 0;
const UNAVAILABLE: u8 = 1;
const CORRUPT: u8 = 2;
const PANICS: u8 = 3;

impl Queue for Sick {
    fn publish(&self, messages: Vec<Message>) -> BoxFuture<'_, Result<(), BackendError>> {
        self.inner.publish(messages)
    }
    fn take(
        &self,
        max: usize,
        lease: Duration,
    ) -> BoxFuture<'_, Result<Vec<Delivery>, BackendError>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let fail = |trouble| Box::pin(async move { Err(BackendError::new(trouble, "it is ill")) });
        match self.illness.load(Ordering::Relaxed) {
            UNAVAILABLE => fail(Trouble::Unavailable),
            CORRUPT => fail(Trouble::Corrupt),
            PANICS => panic!("on purpose"),
            _ => self.inner.take(max, lease),
        }
    }
    fn ready(&self) -> BoxFuture<'_, ()> {
        self.inner.ready()
    }
    fn acknowledge(&self, receipts: Vec<Receipt>) -> BoxFuture<'_, Result<(), BackendError>> {
        self.inner.acknowledge(receipts)
    }
    fn release(
        &self,
        receipt: Receipt,
        delay: Duration,
        spent: bool,
    ) -> BoxFuture<'_, Result<(), BackendError>> {
        self.inner.release(receipt, delay, spent)
    }
    fn bury(&self, receipt: Receipt, why: Label) -> BoxFuture<'_, Result<(), BackendError>> {
        self.inner.bury(receipt, why)
    }
    fn extend(
        &self,
        receipts: Vec<Receipt>,
        lease: Duration,
    ) -> BoxFuture<'_, Result<(), BackendError>> {
        self.inner.extend(receipts, lease)
    }
    fn depth(&self) -> BoxFuture<'_, Result<Depth, BackendError>> {
        self.inner.depth()
    }
    fn dead(
        &self,
        after: Option<u64>,
        max: usize,
    ) -> BoxFuture<'_, Result<Vec<DeadLetter>, BackendError>> {
        self.inner.dead(after, max)
    }
    fn requeue(&self, numbers: Vec<u64>) -> BoxFuture<'_, Result<usize, BackendError>> {
        self.inner.requeue(numbers)
    }
    fn discard(
        &self,
        numbers: Vec<u64>,
        reason: Label,
    ) -> BoxFuture<'_, Result<usize, BackendError>> {
        self.inner.discard(numbers, reason)
    }
}

struct Patient {
    engine: Engine,
    heard: Arc<Heard>,
    illness: Arc<AtomicU8>,
    asked: Arc<AtomicU32>,
}

/// An engine whose queue of requests can be made ill.
fn patient(illness: u8) -> Patient {
    let clock = Paused::new();
    let memory = Memory::new(clock);
    let heard = Arc::new(Heard::default());
    let (illness, asked) = (Arc::new(AtomicU8::new(illness)), Arc::default());
    let sick = Arc::new(Sick {
        inner: memory.queue(QueueName::Requests),
        illness: Arc::clone(&illness),
        asked: Arc::clone(&asked),
    });
    let store = Arc::new(memory.clone());
    let queues: [Arc<dyn Queue>; 3] = [
        memory.queue(QueueName::Answers),
        memory.queue(QueueName::Fires),
        sick,
    ];
    let backend = Backend::new(store.clone(), store.clone(), queues).with_outbox(store);
    let engine = Engine::builder(backend)
        .wall_clock(clock)
        .policies(policies())
        .listener(heard.clone());
    Patient {
        engine: engine.build().unwrap(),
        heard,
        illness,
        asked,
    }
}

async fn succeeds(request: Request) -> Result<Option<crate::machine::Answer>, BoxError> {
    Ok(Some(request.answer(Outcome::Success)))
}

#[tokio::test(start_paused = true)]
async fn a_backend_that_is_away_is_asked_ever_more_slowly_and_told_once() {
    let Patient {
        engine,
        heard,
        illness,
        asked,
    } = patient(UNAVAILABLE);
    let running = engine.run(tower::service_fn(succeeds));
    engine.begin(payment("p")).await.unwrap();
    tokio::time::sleep(MINUTE).await;
    assert!(!engine.is_ready());
    assert_eq!(engine.status().await.unwrap().down, [Task::Requests]);
    let asked = asked.load(Ordering::Relaxed);
    assert!((12..40).contains(&asked), "{asked}");
    assert_eq!(heard.kinds(), ["backend_fails"]);
    illness.store(WELL, Ordering::Relaxed);
    assert_eq!(ended(&engine, "p").await.progress.end, Some(End::Answered));
    assert!(engine.is_ready());
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_task_that_dies_is_told_and_started_again() {
    let Patient {
        engine,
        heard,
        illness,
        ..
    } = patient(PANICS);
    let running = engine.run(tower::service_fn(succeeds));
    engine.begin(payment("p")).await.unwrap();
    tokio::time::sleep(Duration::from_millis(60)).await;
    illness.store(WELL, Ordering::Relaxed);
    assert_eq!(ended(&engine, "p").await.progress.end, Some(End::Answered));
    assert!(engine.is_ready());
    let alert = heard.alerts.lock().unwrap()[0].clone();
    assert_eq!(alert.kind.as_str(), "task_died");
    assert_eq!(
        alert.detail.unwrap().as_str(),
        "requests: it panicked: on purpose"
    );
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_task_that_dies_too_often_ends_the_engine_with_an_error() {
    let Patient { engine, heard, .. } = patient(CORRUPT);
    let running = engine.run(tower::service_fn(succeeds));
    let error = running.ended().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the task requests died too often: it is ill"
    );
    assert_eq!(error.task(), Some(Task::Requests));
    assert_eq!(heard.kinds(), ["task_died"; 6]);
    assert!(!engine.is_ready());
    assert_eq!(running.stop().await, Err(error));
}

/// Row: a bug in what sends costs the message its turn, and neither the task nor the others.
#[tokio::test(start_paused = true)]
async fn a_sender_that_panics_is_tried_again_and_its_message_buried_in_the_end() {
    let clock = Paused::new();
    let heard = Arc::new(Heard::default());
    let engine = on(&Memory::new(clock), clock)
        .listener(heard.clone())
        .build()
        .unwrap();
    let running = engine.run(tower::service_fn(async |request: Request| {
        assert_ne!(request.id.as_str(), "poison", "a bug");
        succeeds(request).await
    }));
    for name in ["poison", "p"] {
        engine.begin(payment(name)).await.unwrap();
    }
    let began = clock::now();
    ended(&engine, "p").await;
    assert!(clock::now() - began < Duration::from_secs(1));
    tokio::time::sleep(MINUTE * 4).await;
    let dead = engine
        .backend()
        .queue(QueueName::Requests)
        .dead(None, 9)
        .await
        .unwrap();
    assert_eq!((dead.len(), dead[0].deliveries), (1, 10));
    assert_eq!(
        stored(&engine, "poison").await.progress.state,
        State::InFlight
    );
    assert!(
        heard.kinds().contains(&"first_dead_letter"),
        "{:?}",
        heard.kinds()
    );
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_technical_failure_is_sent_again_under_the_same_key() {
    let clock = Paused::new();
    let engine = on(&Memory::new(clock), clock).build().unwrap();
    let sent = Sent::default();
    let flaky = {
        let sent = sent.clone();
        tower::service_fn(move |request: Request| {
            sent.note(&request);
            let answer = match sent.keys().len() {
                1 => Err::<_, BoxError>("connection reset".into()),
                _ => Ok(Some(request.answer(Outcome::Success))),
            };
            async { answer }
        })
    };
    let running = engine.run(flaky);
    engine.begin(payment("p")).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let waits = stored(&engine, "p").await.progress;
    assert!(waits.is_technical_wait());
    assert_eq!(waits.reason.unwrap().as_str(), "connection reset");
    let record = ended(&engine, "p").await;
    assert_eq!(sent.keys(), ["p#1", "p#1"]);
    assert_eq!(
        (
            record.progress.attempt_current,
            record.progress.postponements
        ),
        (1, 1)
    );
    running.stop().await.unwrap();
}

/// Row: the answer is lost; the reconciler sends the same key again.
#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_asked_for_again() {
    let clock = Paused::new();
    let heard = Arc::new(Heard::default());
    let engine = on(&Memory::new(clock), clock)
        .listener(heard.clone())
        .build()
        .unwrap();
    let sent = Sent::default();
    let silent_once = {
        let sent = sent.clone();
        tower::service_fn(move |request: Request| {
            sent.note(&request);
            let second = sent.keys().len() > 1;
            let answer = second.then(|| request.answer(Outcome::Success));
            async move { Ok::<_, BoxError>(answer) }
        })
    };
    let running = engine.run(silent_once);
    engine.begin(payment("p")).await.unwrap();
    ended(&engine, "p").await;
    assert_eq!(sent.keys(), ["p#1", "p#1"]);
    assert_eq!(heard.kinds(), ["answer_lost", "stuck"]);
    running.stop().await.unwrap();
}
