//! The history of a transaction.

use super::{Label, Schedule, State, TransactionId, Utc};

/// One row of a transaction's history, written in the same transaction as the transition.
///
/// The schedule's name is not stored: [`AuditEvent::schedule_name`] tells it from the attempt and its number.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AuditEvent {
    /// When.
    pub at: Utc,
    /// Where it stood; `None` when it began.
    pub from: Option<State>,
    /// Where it stands now.
    pub to: State,
    /// Which attempt it is about.
    pub attempt: u32,
    /// Which schedule of that attempt.
    pub seq: u32,
    /// When that is due, if it waits.
    pub fire_at: Option<Utc>,
    /// What made it happen.
    pub cause: Cause,
    /// Why, in the dependency's or the operator's words.
    pub reason: Option<Label>,
}

impl AuditEvent {
    /// Puts together what was stored.
    #[must_use]
    pub const fn new(at: Utc, from: Option<State>, to: State, cause: Cause) -> Self {
        Self {
            at,
            from,
            to,
            attempt: 1,
            seq: 0,
            fire_at: None,
            cause,
            reason: None,
        }
    }

    /// Returns the name of the schedule that it is about, if it waits for one.
    #[must_use]
    pub fn schedule_name(&self, id: &TransactionId) -> Option<String> {
        let fire_at = self.fire_at?;
        let (attempt, seq) = (self.attempt, self.seq);
        Some(
            Schedule {
                attempt,
                seq,
                fire_at,
            }
            .name(id),
        )
    }
}

/// What made a transition happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Cause {
    /// It began.
    Begun,
    /// The dependency did it.
    Succeeded,
    /// The dependency refused an attempt.
    Refused,
    /// The dependency said that it never will.
    Declined,
    /// A send failed technically.
    TechnicalFailure,
    /// The schedule exists.
    Confirmed,
    /// A fire claimed the attempt.
    Claimed,
    /// The request has left.
    Published,
    /// The breaker postponed the attempt.
    Postponed,
    /// An operator moved it.
    Moved,
    /// An operator wanted it now.
    FiredNow,
    /// It was resolved otherwise.
    Resolved,
    /// An operator called it off.
    Cancelled,
    /// The reconciler fired it, for its fire had not come.
    Refired,
    /// The reconciler sent it again, for its answer had not come.
    Resent,
    /// The reconciler gave up.
    GivenUp,
}

impl Cause {
    /// Every cause.
    pub const ALL: [Self; 16] = [
        Self::Begun,
        Self::Succeeded,
        Self::Refused,
        Self::Declined,
        Self::TechnicalFailure,
        Self::Confirmed,
        Self::Claimed,
        Self::Published,
        Self::Postponed,
        Self::Moved,
        Self::FiredNow,
        Self::Resolved,
        Self::Cancelled,
        Self::Refired,
        Self::Resent,
        Self::GivenUp,
    ];

    /// Returns the name that is stored and shown: lower case, stable.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Begun => "begun",
            Self::Succeeded => "succeeded",
            Self::Refused => "refused",
            Self::Declined => "declined",
            Self::TechnicalFailure => "technical failure",
            Self::Confirmed => "confirmed",
            Self::Claimed => "claimed",
            Self::Published => "published",
            Self::Postponed => "postponed",
            Self::Moved => "moved",
            Self::FiredNow => "fired now",
            Self::Resolved => "resolved",
            Self::Cancelled => "cancelled",
            Self::Refired => "refired",
            Self::Resent => "resent",
            Self::GivenUp => "given up",
        }
    }

    /// Reads a stored name; `None` for any other text.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|cause| cause.as_str() == name)
    }
}
