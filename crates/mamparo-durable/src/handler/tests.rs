//! What the suite of backends does not look at: settings, learning, alerts. The rest is in `conformance/`.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mamparo_core::clock::SystemClock;
use tower::ServiceExt as _;

use super::{AnswerHandler, Cycle, FireHandler, Listener, Reconciler, Runner, Settlement};
use crate::backend::{Message, NewTransaction, QueueName};
use crate::machine::{
    Alert, AlertKind, Answer, Input, Note, Outcome, Progress, Record, State, TransactionId, Utc,
};
use crate::memory::Memory;
use crate::policy::{Adaptive, Policies, Policy, Rule, Wait};

const HOUR: Duration = Duration::from_secs(3600);

#[derive(Debug, Default)]
struct Heard {
    alerts: Mutex<Vec<(AlertKind, u64)>>,
    lags: Mutex<Vec<(QueueName, Note, Duration)>>,
}

impl Listener for Heard {
    fn alert(&self, alert: &Alert) {
        self.alerts.lock().unwrap().push((alert.kind, alert.count));
    }

    fn handled(&self, queue: QueueName, note: Note, lag: Duration) {
        self.lags.lock().unwrap().push((queue, note, lag));
    }
}

fn policy(hours: u32) -> Policy {
    let wait = Wait::builder()
        .base(HOUR * hours)
        .jitter(0.0)
        .build()
        .unwrap();
    Policy::builder().business(wait).build().unwrap()
}

async fn begin(runner: &Runner, name: &str, then: Option<Input>) -> TransactionId {
    let id = TransactionId::new(name).unwrap();
    let record = Record::in_flight(runner.terms(id.clone(), "payout", Some("acme".into())));
    runner
        .begin(NewTransaction::new(record, "the request").unwrap(), then)
        .await
        .unwrap();
    id
}

async fn progress(runner: &Runner, id: &TransactionId) -> Progress {
    runner.load(id).await.unwrap().unwrap().progress
}

fn refused(attempt: u32, reason: &str) -> Input {
    Input::Answer(Answer::new(attempt, 0, Outcome::Refused).with_reason(reason))
}

/// How long it waits, in hours.
fn waits(progress: &Progress) -> u64 {
    let wait = progress.next_fire_at.unwrap().since(progress.updated_at);
    wait.as_secs().div_ceil(3600)
}

#[tokio::test]
async fn the_policy_may_differ_by_customer_and_by_reason_of_the_refusal() {
    let policies = Policies::new(policy(1))
        .rule(Rule::new(policy(5)).reason("NOT_AVAILABLE"))
        .and_then(|it| it.rule(Rule::new(policy(3)).customer("acme")))
        .unwrap();
    let runner = Runner::builder(Memory::new(SystemClock).backend())
        .policies(policies)
        .build();
    for (name, reason, hours) in [("a", "CANCELLED", 3), ("b", "NOT_AVAILABLE", 5)] {
        let id = begin(&runner, name, Some(refused(1, reason))).await;
        assert_eq!(waits(&progress(&runner, &id).await), hours);
    }
}

#[tokio::test]
async fn waits_of_a_kind_stretch_as_its_retries_are_refused() {
    let adaptive = Adaptive::new(1.0).unwrap();
    let builder =
        Runner::builder(Memory::new(SystemClock).backend()).policies(Policies::new(policy(2)));
    let runner = builder.adaptive(adaptive).build();
    let id = begin(&runner, "first", Some(refused(1, "no"))).await;
    assert_eq!(
        waits(&progress(&runner, &id).await),
        2,
        "an original says nothing about retries"
    );
    runner
        .run(&id, Input::Fire(crate::machine::Fire::new(2, 0)))
        .await
        .unwrap();
    runner.run(&id, refused(2, "no")).await.unwrap();
    let next = begin(&runner, "next", Some(refused(1, "no"))).await;
    assert_eq!(
        waits(&progress(&runner, &next).await),
        8,
        "four times as long"
    );
}

#[tokio::test]
async fn a_message_in_the_wrong_queue_is_buried_and_a_handled_one_is_heard_of() {
    let memory = Memory::new(SystemClock);
    let heard = Arc::<Heard>::default();
    let runner = Runner::builder(memory.backend())
        .listener(heard.clone())
        .build();
    let id = begin(&runner, "t", None).await;
    let answers = memory.queue(QueueName::Answers);
    answers
        .publish(vec![Message::Answer {
            id,
            answer: Answer::new(1, 0, Outcome::Success),
        }])
        .await
        .unwrap();
    let delivery = answers.take(1, HOUR).await.unwrap().remove(0);
    let misplaced = FireHandler::new(runner.clone(), ())
        .oneshot(delivery.clone())
        .await
        .unwrap();
    assert_eq!(misplaced.settlement, Settlement::Bury);
    let handled = AnswerHandler::new(runner).oneshot(delivery).await.unwrap();
    assert_eq!(
        (handled.note, handled.settlement),
        (Note::Applied, Settlement::Acknowledged)
    );
    assert_eq!(answers.depth().await.unwrap().taken, 0);
    let lags = heard.lags.lock().unwrap();
    assert!(matches!(lags.as_slice(), [(QueueName::Answers, Note::Applied, lag)] if *lag < HOUR));
}

#[tokio::test]
async fn the_reconciler_tells_how_many_were_stuck_and_of_the_first_dead_letter_once() {
    let memory = Memory::new(SystemClock);
    let heard = Arc::<Heard>::default();
    let runner = Runner::builder(memory.backend())
        .listener(heard.clone())
        .build();
    for n in 0..5 {
        let id = TransactionId::new(format!("t{n}")).unwrap();
        let mut record = Record::sending(runner.terms(id, "payout", None));
        record.progress.updated_at = Utc::MIN;
        let new = NewTransaction::new(record, "the request").unwrap();
        memory.backend().store().begin(new).await.unwrap();
    }
    let answers = memory.queue(QueueName::Answers);
    let unknown = TransactionId::new("unknown").unwrap();
    answers
        .publish(vec![Message::Answer {
            id: unknown,
            answer: Answer::new(1, 0, Outcome::Success),
        }])
        .await
        .unwrap();
    let delivery = answers.take(1, HOUR).await.unwrap().remove(0);
    answers
        .bury(delivery.receipt, "nobody knows it".into())
        .await
        .unwrap();

    let reconciler = Reconciler::builder(runner.clone())
        .limit(3)
        .at_once(2)
        .build()
        .unwrap();
    let first = reconciler.cycle(Cycle::default()).await.unwrap();
    assert_eq!(
        (first.found, first.mended, first.failed, first.dead),
        (3, 3, 0, 1)
    );
    let second = reconciler.cycle(first).await.unwrap();
    assert_eq!((second.found, second.mended, second.dead), (2, 2, 1));
    let third = reconciler.cycle(second).await.unwrap();
    assert_eq!(
        third.found, 0,
        "what was looked after is not stuck again at once"
    );
    let alerts = heard.alerts.lock().unwrap().clone();
    assert_eq!(
        alerts,
        [
            (AlertKind::Stuck, 3),
            (AlertKind::FirstDeadLetter, 1),
            (AlertKind::Stuck, 2)
        ]
    );
    assert_eq!(
        memory.queue(QueueName::Fires).depth().await.unwrap().ready,
        5
    );
    assert_eq!(
        progress(&runner, &TransactionId::new("t0").unwrap())
            .await
            .state,
        State::Sending
    );
}

#[test]
fn a_reconciler_that_mends_nothing_is_refused() {
    let runner = || Runner::builder(Memory::new(SystemClock).backend()).build();
    let limit = Reconciler::builder(runner()).limit(0).build().unwrap_err();
    let at_once = Reconciler::builder(runner())
        .at_once(0)
        .build()
        .unwrap_err();
    assert_eq!(
        (limit.setting(), at_once.setting()),
        ("reconciler.limit", "reconciler.at_once")
    );
}
