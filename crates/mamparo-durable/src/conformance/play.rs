//! Plays a transaction through: handlers that take from the queues, and a dependency that honours idempotency keys.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mamparo_core::BoxError;
use tower_service::Service;

use super::mortal::Death;
use super::support::{LONG, begin, pass, stored};
use crate::backend::{Backend, Delivery, Message, Queue, QueueName};
use crate::handler::{AnswerHandler, FireHandler, Handled, Listener, Runner, Settlement};
use crate::machine::{
    Alert, AlertKind, Answer, Cause, Outcome, Record, State, Terms, TransactionId,
};
use crate::policy::{Policies, Policy, Wait};

/// As often as all queues are looked at for one more message.
const ROUNDS: usize = 400;

/// A world to play in.
#[derive(Clone, Debug)]
pub(super) struct Play {
    pub(super) backend: Backend,
    pub(super) runner: Runner,
    pub(super) dependency: Arc<Dependency>,
    pub(super) alerts: Arc<Alerts>,
    /// Whether each message is handled twice.
    pub(super) twice: bool,
}

/// A dependency that answers by a script, each attempt once: the same key gets the same answer.
#[derive(Debug)]
pub(super) struct Dependency {
    script: Vec<Outcome>,
    seen: Mutex<BTreeMap<String, u32>>,
}

/// Everything that a person was told.
#[derive(Debug, Default)]
pub(super) struct Alerts(Mutex<Vec<Alert>>);

impl Listener for Alerts {
    fn alert(&self, alert: &Alert) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(alert.clone());
    }
}

impl Alerts {
    pub(super) fn kinds(&self) -> Vec<AlertKind> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
            .map(|alert| alert.kind)
            .collect()
    }
}

impl Alerts {
    /// What was counted by those of a kind.
    pub(super) fn counts(&self, kind: AlertKind) -> Vec<u64> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of = all.iter().filter(|alert| alert.kind == kind);
        of.map(|alert| alert.count).collect()
    }
}

impl Dependency {
    fn answer(&self, key: String, attempt: u32) -> Outcome {
        *self
            .seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .entry(key)
            .or_insert(0) += 1;
        let last = self.script.len().saturating_sub(1);
        self.script[(attempt as usize - 1).min(last)]
    }

    /// How often each key came.
    pub(super) fn seen(&self) -> BTreeMap<String, u32> {
        self.seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// Two attempts at most, every wait a millisecond or two.
pub(super) fn policy() -> Policy {
    let wait = Wait::builder()
        .base(Duration::from_millis(1))
        .cap(Duration::from_millis(2))
        .build()
        .unwrap();
    let policy = Policy::builder()
        .max_attempts(2)
        .max_postponements(3)
        .longest_hint(Duration::from_millis(1));
    policy
        .business(wait)
        .technical(wait)
        .postponed(wait)
        .build()
        .unwrap()
}

impl Play {
    pub(super) fn new(backend: &Backend, script: &[Outcome]) -> Self {
        Self::by(backend, script, policy())
    }

    pub(super) fn by(backend: &Backend, script: &[Outcome], policy: Policy) -> Self {
        let alerts = Arc::<Alerts>::default();
        let runner = Runner::builder(backend.clone())
            .policies(Policies::new(policy))
            .listener(alerts.clone());
        Self {
            backend: backend.clone(),
            runner: runner.build(),
            dependency: Arc::new(Dependency {
                script: script.to_vec(),
                seen: Mutex::default(),
            }),
            alerts,
            twice: false,
        }
    }

    /// The same world, for handlers that die once.
    pub(super) fn mortal(&self, death: &Death) -> Self {
        let runner = Runner::builder(death.of(&self.backend))
            .policies(Policies::new(policy()))
            .listener(self.alerts.clone());
        Self {
            runner: runner.build(),
            ..self.clone()
        }
    }

    pub(super) fn terms(&self, name: &str) -> Terms {
        self.runner.terms(super::support::id(name), "payment", None)
    }

    /// Begins a transaction whose original is on its way.
    pub(super) async fn begin(&self, name: &str) -> TransactionId {
        let record = Record::in_flight(self.terms(name));
        begin(&self.backend, &record).await;
        let request =
            crate::backend::Request::new(&record.terms, 1, 0, (&b"the request"[..]).into());
        self.publish(Message::Request(request)).await;
        record.terms.id.clone()
    }

    pub(super) async fn publish(&self, message: Message) {
        self.backend
            .queue(message.queue())
            .publish(vec![message])
            .await
            .unwrap();
    }

    pub(super) async fn answer(&self, id: &TransactionId, answer: Answer) {
        self.publish(Message::Answer {
            id: id.clone(),
            answer,
        })
        .await;
    }

    /// Handles whatever comes, until a transaction is at its end.
    pub(super) async fn until_end(&self, id: &TransactionId) -> Record {
        self.until(id, State::is_terminal).await
    }

    /// Handles whatever comes, until a transaction stands so.
    pub(super) async fn until(&self, id: &TransactionId, stands: impl Fn(State) -> bool) -> Record {
        for _ in 0..ROUNDS {
            let record = stored(&self.backend, id).await;
            if stands(record.progress.state) {
                return record;
            }
            self.round().await;
            pass(Duration::from_millis(1)).await;
        }
        panic!(
            "{id} is lost: {:?}",
            stored(&self.backend, id).await.progress
        );
    }

    /// Handles what is left, and what comes of that.
    pub(super) async fn drain(&self) {
        for _ in 0..ROUNDS {
            if self.round().await == 0 {
                return;
            }
        }
        panic!("messages keep coming");
    }

    /// Takes everything from each queue once; says how much there was.
    pub(super) async fn round(&self) -> usize {
        let mut messages = 0;
        for name in QueueName::ALL {
            let queue = &**self.backend.queue(name);
            let taken = queue.take(100, LONG).await.unwrap();
            messages += taken.len();
            for delivery in taken {
                self.handle(queue, delivery).await;
            }
        }
        messages
    }

    async fn handle(&self, queue: &dyn Queue, delivery: Delivery) {
        if self.twice {
            // As if whoever had it first had died before it acknowledged.
            let early = Delivery::new(
                delivery.message.clone(),
                1,
                delivery.since,
                stale(&delivery),
            );
            self.call(early).await.unwrap();
        }
        let receipt = delivery.receipt.clone();
        let through = self.runner.backend().queue(receipt.queue);
        let settled = match self.call(delivery).await {
            Ok(Settlement::Acknowledge) => through.acknowledge(vec![receipt.clone()]).await,
            Ok(Settlement::Acknowledged) => Ok(()),
            Ok(Settlement::Bury) => {
                queue
                    .bury(receipt.clone(), "nobody can handle it".into())
                    .await
            }
            Err(_) => queue.release(receipt.clone(), Duration::ZERO, true).await,
        };
        if settled.is_err() {
            // Whoever had it died: its lease would be over at last.
            queue.release(receipt, Duration::ZERO, true).await.unwrap();
        }
    }

    /// Handles one message as the engine would.
    pub(super) async fn call(&self, delivery: Delivery) -> Result<Settlement, BoxError> {
        let handled: Handled = match &delivery.message {
            Message::Answer { .. } => {
                AnswerHandler::new(self.runner.clone())
                    .call(delivery)
                    .await?
            }
            Message::Fire { .. } => {
                FireHandler::new(self.runner.clone(), ())
                    .call(delivery)
                    .await?
            }
            Message::Request(request) => {
                let outcome = self.dependency.answer(request.key(), request.attempt);
                self.answer(
                    &request.id,
                    Answer::new(request.attempt, request.seq, outcome),
                )
                .await;
                return Ok(Settlement::Acknowledge);
            }
        };
        Ok(handled.settlement)
    }

    /// The history agrees with itself and with what is stored.
    pub(super) async fn audit(&self, id: &TransactionId) {
        let history = self
            .backend
            .store()
            .history(id.clone(), 0, 1_000)
            .await
            .unwrap();
        let record = stored(&self.backend, id).await;
        assert_eq!(
            history.first().map(|event| (event.from, event.cause)),
            Some((None, Cause::Begun))
        );
        let mut stands = None;
        for event in &history {
            assert_eq!(event.from, stands, "{history:?}");
            stands = Some(event.to);
        }
        assert_eq!(stands, Some(record.progress.state), "{history:?}");
        let claims = history
            .iter()
            .filter(|event| event.cause == Cause::Claimed)
            .map(|event| (event.attempt, event.seq));
        let mut claims: Vec<_> = claims.collect();
        let all = claims.len();
        claims.dedup();
        assert_eq!(
            claims.len(),
            all,
            "an attempt was claimed twice: {history:?}"
        );
        let refusals = history
            .iter()
            .filter(|event| event.cause == Cause::Refused)
            .count();
        assert!(
            refusals <= record.terms.max_attempts as usize,
            "{history:?}"
        );
    }
}

fn stale(delivery: &Delivery) -> crate::backend::Receipt {
    let mut receipt = delivery.receipt.clone();
    receipt.lease = receipt.lease.wrapping_add(1_000_000);
    receipt
}
