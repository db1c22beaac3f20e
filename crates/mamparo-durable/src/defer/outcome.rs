//! What the caller gets.

use std::fmt::{self, Display};

use crate::machine::{Label, Record, State, TransactionId, Utc};

/// An answer, or the promise of a later attempt; see the [module](super) for why it is neither an error nor an answer of our own.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a deferred request is not done: its caller must be told"]
#[expect(
    clippy::exhaustive_enums,
    reason = "whoever calls must say what it does with each"
)]
pub enum Deferrable<R> {
    /// The dependency's answer, as it came.
    Answered(R),
    /// The request is stored, and is sent again when its time comes.
    Deferred(Deferred),
}

impl<R> Deferrable<R> {
    /// Returns the answer, if it is one.
    pub fn answered(self) -> Option<R> {
        match self {
            Self::Answered(answer) => Some(answer),
            Self::Deferred(_) => None,
        }
    }

    /// Returns what was deferred, if it was.
    pub const fn deferred(&self) -> Option<&Deferred> {
        match self {
            Self::Answered(_) => None,
            Self::Deferred(deferred) => Some(deferred),
        }
    }
}

/// A request that is now a transaction of an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Deferred {
    /// The transaction.
    pub id: TransactionId,
    /// When its next attempt is due; `None` where it is under way again already, or at its end, or could not be read.
    pub next_fire_at: Option<Utc>,
    /// Where it stands. Of an id that was known before, as when a caller repeats a request, it may have gone far.
    pub state: State,
    /// Why it waits.
    pub reason: Option<Label>,
}

impl Deferred {
    pub(super) fn of(record: Record) -> Self {
        let progress = record.progress;
        Self {
            id: record.terms.id.clone(),
            next_fire_at: progress
                .next_fire_at
                .filter(|_| progress.state.is_waiting()),
            state: progress.state,
            reason: progress.reason,
        }
    }

    /// It is stored, but could not be read again.
    pub(super) const fn unread(id: TransactionId, reason: Option<Label>) -> Self {
        Self {
            id,
            next_fire_at: None,
            state: State::Scheduling,
            reason,
        }
    }
}

impl Display for Deferred {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.next_fire_at {
            Some(at) => write!(f, "{} waits until {at}", self.id),
            None => write!(f, "{} is {}", self.id, self.state.as_str()),
        }
    }
}
