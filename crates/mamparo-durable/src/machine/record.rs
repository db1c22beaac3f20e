//! What is known of a transaction: what never changes, and what every transition writes.

use std::sync::Arc;

use super::{End, Label, State, TransactionId, Utc};
use crate::policy::Policy;

/// What never changes after a transaction began. A change of the policy touches only those that begin after it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Terms {
    /// The primary key, chosen by the caller.
    pub id: TransactionId,
    /// What kind of transaction it is; picks the policy.
    pub kind: Label,
    /// Whom it is for, if policies tell customers apart.
    pub customer: Option<Label>,
    /// What the requests go to; what an open breaker postpones together.
    pub dependency: Option<Label>,
    /// The trace context of the original, as a `traceparent` (W3C Trace Context) spells it; later spans link to it.
    pub trace: Option<Label>,
    /// As many attempts as are made, the original included.
    pub max_attempts: u32,
    /// As many postponements as are borne.
    pub max_postponements: u32,
    /// When what is technical ends it.
    pub give_up_at: Utc,
    /// When it began.
    pub created_at: Utc,
}

impl Terms {
    /// Takes from the policy what holds for a transaction that begins at `now`.
    #[must_use]
    pub fn new(id: TransactionId, kind: impl Into<Label>, policy: &Policy, now: Utc) -> Self {
        Self {
            id,
            kind: kind.into(),
            customer: None,
            dependency: None,
            trace: None,
            max_attempts: policy.max_attempts(),
            max_postponements: policy.max_postponements(),
            give_up_at: now.plus(policy.give_up_after()),
            created_at: now,
        }
    }
}

/// What every transition writes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Progress {
    /// Where it stands.
    pub state: State,
    /// The attempt whose answer is accepted: the last one sent, or being sent.
    pub attempt_current: u32,
    /// The attempt that is scheduled or being sent; n+1 after a refusal, n again after a technical failure.
    pub attempt_next: Option<u32>,
    /// Which schedule of this attempt counts: 0, and 1 more each time the same attempt gets another instant.
    pub schedule_seq: u32,
    /// How many of those other instants were for technical reasons or the breaker's.
    pub postponements: u32,
    /// When the next attempt is due, jitter included.
    pub next_fire_at: Option<Utc>,
    /// Why it waits or ended, in the dependency's or the operator's words.
    pub reason: Option<Label>,
    /// Why it is at its end.
    pub end: Option<End>,
    /// When it was last written.
    pub updated_at: Utc,
}

impl Progress {
    /// Returns what a write that starts from here must find unchanged.
    #[must_use]
    pub const fn expect(&self) -> Expect {
        Expect {
            state: self.state,
            attempt_current: self.attempt_current,
            attempt_next: self.attempt_next,
            schedule_seq: self.schedule_seq,
        }
    }

    /// Tells whether it waits to send an attempt again whose outcome nobody knows.
    #[must_use]
    pub fn is_technical_wait(&self) -> bool {
        self.state.is_waiting() && self.attempt_next == Some(self.attempt_current)
    }

    /// Tells whether it agrees with itself, as everything does that the machine writes.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let current = self.attempt_current;
        let next_follows = |next| next == current || current.checked_add(1) == Some(next);
        let fits = match self.state {
            State::InFlight => self.attempt_next.is_none() && self.next_fire_at.is_none(),
            State::Scheduling | State::Scheduled => {
                self.next_fire_at.is_some() && self.attempt_next.is_some_and(next_follows)
            }
            State::Sending => self.attempt_next.is_some_and(next_follows),
            State::Succeeded | State::Failed => self.attempt_next.is_none(),
        };
        let ended = self.end.map(End::state) == self.state.is_terminal().then_some(self.state);
        current >= 1 && fits && ended
    }
}

/// The condition of a write: all four, or it changes nothing.
///
/// In SQL: `WHERE transaction_id = ? AND state = ? AND attempt_current = ? AND attempt_next IS NOT DISTINCT FROM ? AND
/// schedule_seq = ?`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Expect {
    /// The state.
    pub state: State,
    /// The attempt whose answer is accepted.
    pub attempt_current: u32,
    /// The attempt that is scheduled or being sent.
    pub attempt_next: Option<u32>,
    /// Which schedule of it counts.
    pub schedule_seq: u32,
}

/// A transaction as it is stored, but for its request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Record {
    /// What never changes.
    pub terms: Arc<Terms>,
    /// What every transition writes.
    pub progress: Progress,
}

impl Record {
    /// Puts together what was stored.
    #[must_use]
    pub fn new(terms: impl Into<Arc<Terms>>, progress: Progress) -> Self {
        Self {
            terms: terms.into(),
            progress,
        }
    }

    /// Begins a transaction whose caller sends the original itself.
    #[must_use]
    pub fn in_flight(terms: Terms) -> Self {
        Self::begun(terms, State::InFlight, None)
    }

    /// Begins a transaction whose original the engine sends: as if its fire had been accepted.
    #[must_use]
    pub fn sending(terms: Terms) -> Self {
        Self::begun(terms, State::Sending, Some(1))
    }

    fn begun(terms: Terms, state: State, attempt_next: Option<u32>) -> Self {
        let progress = Progress {
            state,
            attempt_current: 1,
            attempt_next,
            schedule_seq: 0,
            postponements: 0,
            next_fire_at: None,
            reason: None,
            end: None,
            updated_at: terms.created_at,
        };
        Self::new(terms, progress)
    }
}
