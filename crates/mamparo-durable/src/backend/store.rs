//! Is it still wanted: the transactions and their history.

use std::fmt::Debug;

use bytes::Bytes;

use super::{BackendError, BoxFuture};
use crate::machine::{AuditEvent, Label, Patience, Record, State, TransactionId, Utc, Write};

/// Keeps transactions and their history.
///
/// A write and its row of history are one transaction of the backend.
pub trait Store: Debug + Send + Sync + 'static {
    /// Begins a transaction, with its first row of history.
    ///
    /// Called twice with the same id, the second call changes nothing and returns what is stored: [`Begun::Exists`].
    fn begin(&self, new: NewTransaction) -> BoxFuture<'_, Result<Begun, BackendError>>;

    /// Reads transactions, in the order of their ids; `None` for one that is not stored. One that can't be read fails alone.
    fn load(
        &self,
        ids: Vec<TransactionId>,
    ) -> BoxFuture<'_, Vec<Result<Option<Record>, BackendError>>>;

    /// Reads what a transaction is to send again; `None` if it is not stored.
    fn request(&self, id: TransactionId) -> BoxFuture<'_, Result<Option<Bytes>, BackendError>>;

    /// Writes each transition if what is stored is as it expects, together with its row of history; a result for each.
    ///
    /// Called twice, the second call misses: what is stored is not as expected any more. A miss stops no other write.
    fn write(
        &self,
        writes: Vec<(TransactionId, Write)>,
    ) -> BoxFuture<'_, Vec<Result<Written, BackendError>>>;

    /// Reads the history of a transaction, oldest first, at most `limit` rows after the first `skip`.
    fn history(
        &self,
        id: TransactionId,
        skip: usize,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<AuditEvent>, BackendError>>;

    /// Finds at most `limit` transactions that sit in a state that is not terminal past their threshold, the oldest first.
    ///
    /// SCHEDULED counts from `next_fire_at`, every other state from `updated_at`. It may return one that has moved on since:
    /// the machine judges again.
    fn stuck(
        &self,
        now: Utc,
        patience: Patience,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Record>, BackendError>>;

    /// Lists at most `limit` transactions that fit, by id, after the id in the filter.
    fn list(
        &self,
        filter: Filter,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Record>, BackendError>>;

    /// Forgets at most `limit` transactions that were at their end by then, the first to end first, each with its request and history;
    /// says how many. What is among the messages and dead letters stays.
    ///
    /// Called twice, the second call forgets others. All of one call is one write, for which others may have to wait.
    fn forget(&self, ended_by: Utc, limit: usize) -> BoxFuture<'_, Result<u64, BackendError>>;

    /// Counts the transactions by state and attempt, and says how late the latest is.
    fn census(&self, now: Utc) -> BoxFuture<'_, Result<Census, BackendError>>;
}

/// A transaction that begins: its record and what it sends.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NewTransaction {
    /// What is stored of it.
    pub record: Record,
    /// What every attempt sends; at most [`MAX_REQUEST_BYTES`](crate::limits::MAX_REQUEST_BYTES).
    pub request: Bytes,
}

impl NewTransaction {
    /// Checks the request's size.
    ///
    /// # Errors
    ///
    /// [`InvalidSetting`](mamparo_core::InvalidSetting) when it is larger than
    /// [`MAX_REQUEST_BYTES`](crate::limits::MAX_REQUEST_BYTES).
    pub fn new(
        record: Record,
        request: impl Into<Bytes>,
    ) -> Result<Self, mamparo_core::InvalidSetting> {
        let request = request.into();
        if request.len() > crate::limits::MAX_REQUEST_BYTES {
            let value = format!("{} bytes", request.len());
            let reason =
                "must have at most 262144 bytes: keep a larger one elsewhere and store where";
            return Err(mamparo_core::InvalidSetting::new("request", value, reason));
        }
        Ok(Self { record, request })
    }

    /// Returns the first row of its history.
    #[must_use]
    pub fn event(&self) -> AuditEvent {
        let progress = &self.record.progress;
        AuditEvent::new(
            progress.updated_at,
            None,
            progress.state,
            crate::machine::Cause::Begun,
        )
    }
}

/// What came of beginning a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "it is there now, or it was")]
pub enum Begun {
    /// It is stored now.
    New,
    /// One of that id was stored before: this one.
    Exists(Record),
}

/// What came of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "a conditional write applies or it doesn't"
)]
pub enum Written {
    /// It is stored.
    Applied,
    /// What was stored was not as expected: this, or nothing.
    Missed(Option<Record>),
}

/// Which transactions to list. What is not named fits all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Filter {
    /// In this state.
    pub state: Option<State>,
    /// Of this kind.
    pub kind: Option<Label>,
    /// Going to this dependency.
    pub dependency: Option<Label>,
    /// Only ids after this one.
    pub after: Option<TransactionId>,
}

impl Filter {
    /// Fits those in this state only.
    #[must_use]
    pub const fn state(mut self, state: State) -> Self {
        self.state = Some(state);
        self
    }

    /// Fits this kind only.
    #[must_use]
    pub fn kind(mut self, kind: impl Into<Label>) -> Self {
        self.kind = Some(kind.into());
        self
    }

    /// Fits those to this dependency only.
    #[must_use]
    pub fn dependency(mut self, dependency: impl Into<Label>) -> Self {
        self.dependency = Some(dependency.into());
        self
    }

    /// Fits ids after this one only.
    #[must_use]
    pub fn after(mut self, id: TransactionId) -> Self {
        self.after = Some(id);
        self
    }
}

/// How many transactions there are, and how old and late they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Census {
    /// By state and current attempt, those that are none left out.
    pub counts: Vec<Count>,
    /// When the oldest began that is not at its end.
    pub oldest: Option<Utc>,
    /// When the first was due that waits and is overdue.
    pub overdue_since: Option<Utc>,
    /// How many wait and are overdue.
    pub overdue: u64,
}

/// One line of a [`Census`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Count {
    /// The state.
    pub state: State,
    /// The current attempt.
    pub attempt: u32,
    /// How many.
    pub transactions: u64,
}
