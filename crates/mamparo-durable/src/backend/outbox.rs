//! All of a step in one transaction.

use std::fmt::Debug;
use std::time::Duration;

use super::{BackendError, BoxFuture, NewTransaction, Receipt};
use crate::machine::{Effect, Label, Record, TransactionId, Utc, Write};

/// A backend whose store, scheduler and queues share a database: a handler's whole step is one transaction.
///
/// The request that a step sends is stored in that transaction, in the backend's own queue of requests. Where the dependency
/// listens to another broker, a relay takes it from there: take, publish, confirm, acknowledge. So nothing is published that
/// was not claimed, and nothing claimed that is not published.
pub trait Outbox: Debug + Send + Sync + 'static {
    /// Does each step wholly or not at all; a result for each. Many steps share one commit.
    ///
    /// Called twice, the second call misses, except for a step without writes: its effects are as good twice as once.
    fn commit(&self, steps: Vec<Step>) -> BoxFuture<'_, Vec<Result<Committed, BackendError>>>;

    /// Postpones what is due soon, together; returns how many were moved.
    ///
    /// Each of them ends as if [`Input::Postpone`](crate::machine::Input::Postpone) had been handled to its end: a new
    /// instant, seq and postponements + 1, its schedule moved, a row of history. What has no postponement left, or is past
    /// its end, is left to its fire. Called twice, the second call moves what became due since.
    fn postpone(&self, due: PostponeDue) -> BoxFuture<'_, Result<u64, BackendError>>;
}

/// What a handler wants done, at once.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Step {
    /// The transaction.
    pub id: TransactionId,
    /// Begin it first. If it exists, the step misses.
    pub begin: Option<NewTransaction>,
    /// Its transitions. Each but the first expects what the one before it wrote, so that a backend may check the first's
    /// condition and store only what the last writes; each has its row of history.
    pub writes: Vec<Write>,
    /// Schedules to make and delete, requests to send, fires to publish; no alerts.
    pub effects: Vec<Effect>,
    /// Acknowledge this delivery with it. If another has the message by now, nothing happens to it.
    pub settle: Option<Receipt>,
}

impl Step {
    /// Makes a step that does nothing yet.
    #[must_use]
    pub const fn new(id: TransactionId) -> Self {
        Self {
            id,
            begin: None,
            writes: Vec::new(),
            effects: Vec::new(),
            settle: None,
        }
    }

    /// Tells whether nothing would change.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.begin.is_none()
            && self.writes.is_empty()
            && self.effects.is_empty()
            && self.settle.is_none()
    }
}

/// What came of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a step is done or it isn't")]
pub enum Committed {
    /// All of it is done.
    Applied {
        /// A schedule of that name exists with another instant or payload, and was left.
        conflict: bool,
    },
    /// What was stored was not as expected: this, or nothing. Nothing of the step was done.
    Missed(Option<Record>),
}

/// What an open breaker postpones together.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PostponeDue {
    /// What goes to this dependency.
    pub dependency: Label,
    /// What is SCHEDULED and due before then.
    pub due_before: Utc,
    /// To this instant.
    pub until: Utc,
    /// And at random up to so much later, each its own, so that they don't come back together.
    pub spread: Duration,
    /// Now.
    pub now: Utc,
    /// At most so many.
    pub limit: u64,
}

impl PostponeDue {
    /// Postpones at most `limit` of what goes to `dependency` and is due before `until`, to then.
    #[must_use]
    pub const fn new(
        dependency: Label,
        now: Utc,
        until: Utc,
        spread: Duration,
        limit: u64,
    ) -> Self {
        Self {
            dependency,
            due_before: until,
            until,
            spread,
            now,
            limit,
        }
    }
}
