//! What the tests of queues and scheduler share.

use std::time::Duration;

use mamparo_core::clock::{SystemClock, WallClock};
use mamparo_durable::backend::{Delivery, Message, Queue};
use mamparo_durable::machine::{Answer, Outcome, Schedule, TransactionId, Utc};
use mamparo_testkit::private::PrivateMoto;

use super::resources::{make, settings};
use super::strict::Strict;
use crate::{Aws, SettingsBuilder};

pub(super) const LONG: Duration = Duration::from_secs(60);

/// The shortest lease of SQS.
pub(super) const SHORT: Duration = Duration::from_secs(1);

/// A wall clock that is wrong by so many seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wrong(pub(super) i64);

impl WallClock for Wrong {
    fn now(&self) -> std::time::SystemTime {
        let by = Duration::from_secs(self.0.unsigned_abs());
        match self.0 {
            0.. => SystemClock.now() + by,
            _ => SystemClock.now() - by,
        }
    }
}

/// Clients that go through a proxy, in a hurry.
pub(super) async fn behind_proxy() -> (Aws, Strict) {
    behind_proxy_with(|settings| settings).await
}

pub(super) async fn behind_proxy_with(
    change: impl FnOnce(SettingsBuilder) -> SettingsBuilder,
) -> (Aws, Strict) {
    let strict = Strict::before(PrivateMoto::shared().await.address()).await;
    let settings = settings(&strict.url()).attempt_timeout(Duration::from_secs(2));
    let aws = Aws::connect(change(settings).build().unwrap())
        .await
        .unwrap();
    make(&aws).await;
    drop(strict.all());
    (aws, strict)
}

pub(super) fn now() -> Utc {
    Utc::of(&SystemClock)
}

pub(super) fn id(text: &str) -> TransactionId {
    TransactionId::new(text).unwrap()
}

pub(super) fn answer(name: &str) -> Message {
    Message::Answer {
        id: id(name),
        answer: Answer::new(1, 0, Outcome::Success),
    }
}

pub(super) fn answers(count: usize) -> Vec<Message> {
    (0..count).map(|n| answer(&format!("t{n}"))).collect()
}

pub(super) fn schedule(attempt: u32, fire_at: Utc) -> Schedule {
    Schedule {
        attempt,
        seq: 0,
        fire_at,
    }
}

/// Takes until so many are there.
pub(super) async fn take(queue: &dyn Queue, many: usize, lease: Duration) -> Vec<Delivery> {
    let mut taken = Vec::new();
    let all = async {
        while taken.len() < many {
            taken.extend(queue.take(many - taken.len(), lease).await.unwrap());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let done = tokio::time::timeout(Duration::from_secs(20), all).await;
    assert!(done.is_ok(), "{} of {many} came", taken.len());
    taken
}

pub(super) async fn take_one(queue: &dyn Queue, lease: Duration) -> Delivery {
    take(queue, 1, lease).await.remove(0)
}

pub(super) async fn is_empty(queue: &dyn Queue) -> bool {
    queue.take(10, LONG).await.unwrap().is_empty()
}

/// The names of the transactions, sorted.
pub(super) fn names(taken: &[Delivery]) -> Vec<String> {
    let mut names: Vec<_> = taken.iter().map(|it| it.message.id().to_string()).collect();
    names.sort();
    names
}
