//! One message's way through the machine, done.

use std::sync::{Arc, Mutex, PoisonError};

use mamparo_core::clock::WallClock;

use super::plan::{Plan, plan};
use super::{Listener, RunnerBuilder};
use crate::backend::{
    Backend, BackendError, Committed, Created, Message, Outbox, QueueName, Receipt, Request, Step,
    Trouble, Written,
};
use crate::fail_point::{Doing, FailPoint};
use crate::machine::{
    Alert, AlertKind, Answer, Ask, Context, Effect, Input, Label, Note, Outcome, Record, Reply,
    Run, Settle, Terms, TransactionId, Utc,
};
use crate::policy::{Adaptive, Policies};

/// As often as one message's write may miss before the message is given back: others are at work on the same transaction.
pub const MAX_MISSES: u32 = 32;

/// Carries messages through the machine. Clones share everything.
#[derive(Clone, Debug)]
pub struct Runner {
    pub(super) backend: Backend,
    pub(super) policies: Arc<Policies>,
    pub(super) adaptive: Option<Arc<Mutex<Adaptive>>>,
    pub(super) clock: Arc<dyn WallClock>,
    pub(crate) listener: Arc<dyn Listener>,
}

/// What came of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Handled {
    /// What was decided.
    pub note: Note,
    /// What is to be done with the message.
    pub settlement: Settlement,
}

/// What is to be done with a message that was handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Settlement {
    /// Acknowledge it.
    Acknowledge,
    /// Nothing: it was acknowledged in the transaction that handled it.
    Acknowledged,
    /// Bury it: no delivery of it can ever be handled.
    Bury,
}

impl Handled {
    /// A message that is in the wrong queue.
    pub(crate) const MISPLACED: Self = Self {
        note: Note::NotAllowed,
        settlement: Settlement::Bury,
    };
}

impl Runner {
    /// Starts from a backend, the default policy and the machine's clock.
    pub fn builder(backend: Backend) -> RunnerBuilder {
        RunnerBuilder::new(backend)
    }

    /// Returns the backend.
    #[must_use]
    pub const fn backend(&self) -> &Backend {
        &self.backend
    }

    /// Returns who hears what happens.
    #[must_use]
    pub fn listener(&self) -> &dyn Listener {
        &*self.listener
    }

    pub(crate) fn policies(&self) -> &Policies {
        &self.policies
    }

    pub(crate) fn clock(&self) -> &Arc<dyn WallClock> {
        &self.clock
    }

    /// Returns the instant, by the wall clock.
    #[must_use]
    pub fn now(&self) -> Utc {
        Utc::of(&*self.clock)
    }

    /// Reads a transaction.
    ///
    /// # Errors
    ///
    /// The store's.
    pub async fn load(&self, id: &TransactionId) -> Result<Option<Record>, BackendError> {
        let loaded = self.backend.store().load(vec![id.clone()]).await;
        loaded
            .into_iter()
            .next()
            .unwrap_or_else(|| Err(short("load")))
    }

    /// Handles an input about a transaction that is in no queue: what an operator does, or a service that was answered itself.
    ///
    /// # Errors
    ///
    /// The backend's. Whether it was handled may then be unknown: handle it again.
    pub async fn run(&self, id: &TransactionId, input: Input) -> Result<Handled, BackendError> {
        self.handle(id, |_| input, None).await
    }

    /// Handles a message: reads the transaction, lets `input` say what the message means to it, and carries that to its end.
    ///
    /// # Errors
    ///
    /// The backend's; [`Trouble::Unavailable`] also when others at work on it made [`MAX_MISSES`] writes miss. The message is to be
    /// delivered again.
    pub async fn handle(
        &self,
        id: &TransactionId,
        input: impl FnOnce(&Terms) -> Input + Send,
        receipt: Option<Receipt>,
    ) -> Result<Handled, BackendError> {
        let Some(record) = self.load(id).await? else {
            self.listener.alert(&Alert {
                transaction_id: Some(id.clone()),
                ..Alert::general(AlertKind::UnknownTransaction, 1)
            });
            return Ok(Handled {
                note: Note::Unknown,
                settlement: Settlement::Bury,
            });
        };
        let input = input(&record.terms);
        self.handle_loaded(record, input, receipt).await
    }

    /// Handles an input about a transaction that was read before.
    pub(crate) async fn handle_loaded(
        &self,
        record: Record,
        input: Input,
        receipt: Option<Receipt>,
    ) -> Result<Handled, BackendError> {
        self.learn_from(&record, &input);
        match self.backend.outbox() {
            Some(outbox) => self.at_once(&**outbox, record, &input, receipt).await,
            None => self.one_by_one(record, input).await,
        }
    }

    pub(crate) fn heard(&self, queue: QueueName, handled: Handled, since: Utc) {
        self.listener
            .handled(queue, handled.note, self.now().since(since));
    }

    pub(super) async fn at_once(
        &self,
        outbox: &dyn Outbox,
        mut record: Record,
        input: &Input,
        receipt: Option<Receipt>,
    ) -> Result<Handled, BackendError> {
        for _ in 0..MAX_MISSES {
            let mut plan = self.plan(&record, Some(input));
            // Who dies before a person is told, has the message delivered again, which tells.
            let acknowledged = plan.settle == Settle::Acknowledge
                && plan.alerts.is_empty()
                && receipt.is_some()
                && !plan.step.is_empty();
            if acknowledged {
                plan.step.settle.clone_from(&receipt);
            }
            if plan.step.is_empty() {
                return Ok(self.done(&record.terms, plan, false));
            }
            match commit(outbox, plan.step.clone()).await? {
                Committed::Applied { conflict } => {
                    let handled = self.done(&record.terms, plan, conflict);
                    let settlement = if acknowledged {
                        Settlement::Acknowledged
                    } else {
                        handled.settlement
                    };
                    return Ok(Handled {
                        settlement,
                        ..handled
                    });
                }
                // Only a fresh decision may drop the message.
                Committed::Missed(Some(stored)) => record = stored,
                Committed::Missed(None) => return Err(gone(&record.terms.id)),
            }
        }
        Err(contended(&record.terms.id))
    }

    async fn one_by_one(&self, record: Record, input: Input) -> Result<Handled, BackendError> {
        let terms = &record.terms;
        let reason = reason(&input).cloned();
        let mut run = Run::new(input);
        let mut reply = Reply::Loaded(Some(record.progress));
        let mut misses = 0;
        loop {
            run.reply(reply, terms, &self.context(terms, reason.as_ref()));
            reply = match run.ask() {
                Ask::End { note, settle } => {
                    return Ok(Handled {
                        note,
                        settlement: settlement(settle),
                    });
                }
                Ask::Load => {
                    Reply::Loaded(self.load(&terms.id).await?.map(|record| record.progress))
                }
                Ask::Effect(effect) => self.perform(terms, effect.clone()).await?,
                Ask::Write(write) => {
                    let write = write.clone();
                    let event = write.event.clone();
                    let written = self
                        .backend
                        .store()
                        .write(vec![(terms.id.clone(), write)])
                        .await;
                    match written
                        .into_iter()
                        .next()
                        .unwrap_or_else(|| Err(short("write")))?
                    {
                        Written::Applied => {
                            FailPoint::Written(event.to).reach();
                            self.listener.transition(terms, &event);
                            Reply::Done
                        }
                        Written::Missed(_) if misses == MAX_MISSES => {
                            return Err(contended(&terms.id));
                        }
                        Written::Missed(stored) => {
                            misses += 1;
                            Reply::Missed(stored.map(|record| record.progress))
                        }
                    }
                }
            };
        }
    }

    async fn perform(&self, terms: &Terms, effect: Effect) -> Result<Reply, BackendError> {
        let id = terms.id.clone();
        let doing = doing(&effect);
        match effect {
            Effect::Alert(kind) => self.alert(terms, kind),
            Effect::Schedule(schedule) => {
                let created = self.backend.scheduler().create(vec![(id, schedule)]).await;
                if created
                    .into_iter()
                    .next()
                    .unwrap_or_else(|| Err(short("create")))?
                    == Created::Conflict
                {
                    return Ok(Reply::Conflict);
                }
            }
            Effect::Unschedule { attempt, seq } => {
                self.backend.scheduler().delete(id, attempt, seq).await?
            }
            Effect::Refire { attempt, seq } => {
                let fires = self.backend.queue(QueueName::Fires);
                fires
                    .publish(vec![Message::Fire { id, attempt, seq }])
                    .await?;
            }
            Effect::Send { attempt, seq } => {
                let body = self
                    .backend
                    .store()
                    .request(id.clone())
                    .await?
                    .ok_or_else(|| gone(&id))?;
                let request = Request::new(terms, attempt, seq, body);
                let requests = self.backend.queue(QueueName::Requests);
                requests.publish(vec![Message::Request(request)]).await?;
            }
        }
        FailPoint::Done(doing).reach();
        Ok(Reply::Done)
    }

    pub(super) fn plan(&self, record: &Record, input: Option<&Input>) -> Plan {
        let Some(input) = input else {
            return Plan {
                step: Step::new(record.terms.id.clone()),
                alerts: Vec::new(),
                note: Note::Applied,
                settle: Settle::Acknowledge,
            };
        };
        let context = self.context(&record.terms, reason(input));
        let mut run = Run::new(input.clone());
        run.reply(
            Reply::Loaded(Some(record.progress.clone())),
            &record.terms,
            &context,
        );
        plan(run, &record.terms, &context)
    }

    fn context<'a>(&'a self, terms: &Terms, reason: Option<&Label>) -> Context<'a> {
        let (kind, customer) = (
            terms.kind.as_str(),
            terms.customer.as_ref().map(Label::as_str),
        );
        let policy = self
            .policies
            .pick(kind, customer, reason.map(Label::as_str));
        let draw = fastrand::f64().mul_add(2.0, -1.0);
        let factor = self
            .adaptive
            .as_ref()
            .map_or(1.0, |adaptive| lock(adaptive).factor(kind));
        Context::new(self.now(), draw, policy).with_factor(factor)
    }

    /// A retry that succeeds or is refused says how the kind does; the original says nothing about retries.
    fn learn_from(&self, record: &Record, input: &Input) {
        let (Some(adaptive), Input::Answer(answer)) = (&self.adaptive, input) else {
            return;
        };
        let first = record.progress.expect().attempt_current == answer.attempt
            && !record.progress.state.is_terminal();
        let says = matches!(answer.outcome, Outcome::Success | Outcome::Refused);
        if first && says && answer.attempt > 1 {
            lock(adaptive).observe(
                record.terms.kind.as_str(),
                answer.outcome == Outcome::Success,
            );
        }
    }

    pub(super) fn done(&self, terms: &Terms, plan: Plan, conflict: bool) -> Handled {
        for write in &plan.step.writes {
            self.listener.transition(terms, &write.event);
        }
        let conflict = conflict.then_some(AlertKind::ScheduleConflict);
        for kind in plan.alerts.into_iter().chain(conflict) {
            self.alert(terms, kind);
        }
        Handled {
            note: plan.note,
            settlement: settlement(plan.settle),
        }
    }

    fn alert(&self, terms: &Terms, kind: AlertKind) {
        self.listener.alert(&Alert::about(terms.id.clone(), kind));
    }
}

pub(super) async fn commit(outbox: &dyn Outbox, step: Step) -> Result<Committed, BackendError> {
    let to = step.writes.last().map(|write| write.event.to);
    to.map(FailPoint::Committing).inspect(|at| at.reach());
    let committed = outbox.commit(vec![step]).await;
    to.map(FailPoint::Committed).inspect(|at| at.reach());
    committed
        .into_iter()
        .next()
        .unwrap_or_else(|| Err(short("commit")))
}

const fn doing(effect: &Effect) -> Doing {
    match effect {
        Effect::Schedule(_) => Doing::Schedule,
        Effect::Unschedule { .. } => Doing::Unschedule,
        Effect::Send { .. } => Doing::Send,
        Effect::Refire { .. } => Doing::Refire,
        Effect::Alert(_) => Doing::Alert,
    }
}

fn reason(input: &Input) -> Option<&Label> {
    match input {
        Input::Answer(Answer { reason, .. }) => reason.as_ref(),
        _ => None,
    }
}

const fn settlement(settle: Settle) -> Settlement {
    match settle {
        Settle::Acknowledge => Settlement::Acknowledge,
        Settle::DeadLetter => Settlement::Bury,
    }
}

fn lock(adaptive: &Mutex<Adaptive>) -> std::sync::MutexGuard<'_, Adaptive> {
    adaptive.lock().unwrap_or_else(PoisonError::into_inner)
}

fn contended(id: &TransactionId) -> BackendError {
    BackendError::new(
        Trouble::Unavailable,
        format!("others keep changing transaction {id}; its message is delivered again"),
    )
}

fn gone(id: &TransactionId) -> BackendError {
    BackendError::new(
        Trouble::Corrupt,
        format!("transaction {id} was stored and is gone; look who deletes rows"),
    )
}

pub(super) fn short(verb: &str) -> BackendError {
    BackendError::new(
        Trouble::Corrupt,
        format!("the backend's {verb} answered for fewer than it was asked"),
    )
}
