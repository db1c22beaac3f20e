//! What a service, or an operator, asks of the engine.

use std::sync::Arc;

use super::config::Settings;
use super::health::Health;
use super::status::Status;
use super::transaction::{Original, Transaction};
use super::{EngineBuilder, Running, tasks};
use crate::backend::{
    Backend, BackendError, Begun, BoxFuture, NewTransaction, QueueName, Request, Trouble,
};
use crate::handler::{Cycle, Runner};
use crate::machine::{Answer, AuditEvent, Input, Label, Note, Record, Terms, TransactionId, Utc};

/// The defer plane, as a service and its operators talk to it; see the [module](super). Clones are of the same engine.
#[derive(Clone, Debug)]
pub struct Engine {
    pub(super) runner: Runner,
    pub(super) settings: Arc<Settings>,
    pub(super) health: Arc<Health>,
}

impl Engine {
    /// Starts from a backend and the defaults.
    pub fn builder(backend: Backend) -> EngineBuilder {
        EngineBuilder::new(backend)
    }

    /// Begins a transaction. If one of that id exists, nothing changes, and it is returned.
    ///
    /// # Errors
    ///
    /// The backend's: whether it began may then be unknown, so begin it again. [`Trouble::Refused`] when the request is larger than
    /// [`MAX_REQUEST_BYTES`](crate::limits::MAX_REQUEST_BYTES).
    pub async fn begin(&self, transaction: Transaction) -> Result<Begun, BackendError> {
        let (new, then) = self.starts(transaction)?;
        self.runner.begin(new, then).await
    }

    /// The same, but what is known of it is not handled where one of that id exists.
    pub(crate) async fn begin_new(&self, transaction: Transaction) -> Result<Begun, BackendError> {
        let (new, then) = self.starts(transaction)?;
        self.runner.begin_new(new, then).await
    }

    fn starts(
        &self,
        transaction: Transaction,
    ) -> Result<(NewTransaction, Option<Input>), BackendError> {
        let Transaction {
            id,
            kind,
            customer,
            dependency,
            trace,
            request,
            original,
        } = transaction;
        let terms = Terms {
            dependency,
            trace,
            ..self.runner.terms(id, kind, customer)
        };
        let (record, then) = match original {
            Original::Engine => (Record::sending(terms), None),
            Original::Caller => (Record::in_flight(terms), None),
            Original::Answered(answer) => (Record::in_flight(terms), Some(Input::Answer(answer))),
        };
        let new = NewTransaction::new(record, request)
            .map_err(|error| BackendError::new(Trouble::Refused, error.to_string()))?;
        Ok((new, then))
    }

    /// Tells what the dependency said to one send. Told twice, or of an attempt that is over, nothing happens.
    ///
    /// # Errors
    ///
    /// The backend's. Whether it was stored may then be unknown: tell it again.
    pub async fn answer(&self, id: &TransactionId, answer: Answer) -> Result<Note, BackendError> {
        self.input(id, Input::Answer(answer)).await
    }

    /// Says that it is done otherwise: SUCCEEDED. [`Note::NotAllowed`] while its request is just leaving.
    ///
    /// # Errors
    ///
    /// The backend's.
    pub async fn resolve(
        &self,
        id: &TransactionId,
        reason: Option<Label>,
    ) -> Result<Note, BackendError> {
        self.input(id, Input::Resolve { reason }).await
    }

    /// Calls it off: FAILED, *cancelled*. [`Note::NotAllowed`] unless it waits after a refusal: elsewhere the dependency may have acted.
    ///
    /// # Errors
    ///
    /// The backend's.
    pub async fn cancel(
        &self,
        id: &TransactionId,
        reason: Option<Label>,
    ) -> Result<Note, BackendError> {
        self.input(id, Input::Cancel { reason }).await
    }

    /// Gives the waiting attempt another instant; one in the past is now. [`Note::NotAllowed`] unless it waits.
    ///
    /// # Errors
    ///
    /// The backend's.
    pub async fn move_to(
        &self,
        id: &TransactionId,
        to: Utc,
        reason: Option<Label>,
    ) -> Result<Note, BackendError> {
        self.input(id, Input::Move { to, reason }).await
    }

    /// Makes the waiting attempt now. [`Note::NotAllowed`] unless it waits.
    ///
    /// # Errors
    ///
    /// The backend's.
    pub async fn fire_now(
        &self,
        id: &TransactionId,
        reason: Option<Label>,
    ) -> Result<Note, BackendError> {
        self.input(id, Input::FireNow { reason }).await
    }

    /// Reads a transaction; `None` if there is none of that id.
    ///
    /// # Errors
    ///
    /// The backend's.
    pub async fn load(&self, id: &TransactionId) -> Result<Option<Record>, BackendError> {
        self.runner.load(id).await
    }

    /// Reads its history, oldest first: at most `limit` rows after the first `skip`.
    ///
    /// # Errors
    ///
    /// The backend's.
    pub async fn history(
        &self,
        id: &TransactionId,
        skip: usize,
        limit: usize,
    ) -> Result<Vec<AuditEvent>, BackendError> {
        let store = self.backend().store();
        store.history(id.clone(), skip, limit).await
    }

    /// Runs one cycle of the reconciler, besides those of a running engine. `before` is what the last one returned.
    ///
    /// # Errors
    ///
    /// The store's, if it can't say what is stuck.
    pub async fn reconcile(&self, before: Cycle) -> Result<Cycle, BackendError> {
        self.settings.reconciler.cycle(before).await
    }

    /// Counts transactions and messages, and says how late the latest is.
    ///
    /// # Errors
    ///
    /// The backend's.
    pub async fn status(&self) -> Result<Status, BackendError> {
        let now = self.runner.now();
        let census = self.backend().store().census(now).await?;
        let mut queues = Vec::with_capacity(QueueName::ALL.len());
        for name in QueueName::ALL {
            queues.push((name, self.backend().queue(name).depth().await?));
        }
        Ok(Status {
            now,
            census,
            queues,
            down: self.health.down(),
        })
    }

    /// Tells whether every task works: none is dead, and the backend answers each. True where nothing runs.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.health.is_ready()
    }

    /// Starts the tasks, on this runtime, with a service that sends requests.
    ///
    /// It answers with what the dependency said, or with `None` where the answer comes by itself, as a message. An error is a technical
    /// failure; a [rejection](mamparo_core::Rejection) of the call plane that was not sent gives the request back for as long as
    /// it asks for.
    #[must_use = "dropped, the tasks are stopped without being waited for"]
    pub fn run<S>(&self, sender: S) -> Running
    where
        S: tower_service::Service<Request, Response = Option<Answer>>
            + Clone
            + Send
            + Sync
            + 'static,
        S::Future: Send + 'static,
        S::Error: Into<mamparo_core::BoxError> + 'static,
    {
        tasks::start(self.clone(), sender)
    }

    /// Returns what carries messages through the machine.
    #[must_use]
    pub const fn runner(&self) -> &Runner {
        &self.runner
    }

    /// Returns the backend.
    #[must_use]
    pub const fn backend(&self) -> &Backend {
        self.runner.backend()
    }

    fn input<'a>(
        &'a self,
        id: &'a TransactionId,
        input: Input,
    ) -> BoxFuture<'a, Result<Note, BackendError>> {
        Box::pin(async move { Ok(self.runner.run(id, input).await?.note) })
    }
}
