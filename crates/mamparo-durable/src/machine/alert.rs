//! What a person should hear of.

use std::fmt::Debug;

use super::{End, Label, TransactionId};

/// Something that a person should hear of. An alert may be told again after a crash; it is never told instead of acting.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Alert {
    /// The transaction, if it is about one.
    pub transaction_id: Option<TransactionId>,
    /// What happened.
    pub kind: AlertKind,
    /// How often: how many transactions were stuck, how many dead letters there are.
    pub count: u64,
    /// What else is known: which task died, and of what.
    pub detail: Option<Label>,
}

impl Alert {
    /// Makes an alert about a transaction.
    #[must_use]
    pub const fn about(id: TransactionId, kind: AlertKind) -> Self {
        Self {
            transaction_id: Some(id),
            kind,
            count: 1,
            detail: None,
        }
    }

    /// Makes an alert about so many transactions or messages.
    #[must_use]
    pub const fn general(kind: AlertKind, count: u64) -> Self {
        Self {
            transaction_id: None,
            kind,
            count,
            detail: None,
        }
    }

    /// Says what else is known.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<Label>) -> Self {
        self.detail = Some(detail.into());
        self
    }
}

/// What an alert is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AlertKind {
    /// A transaction failed: the last attempt was refused, it was declined, its outcome is unknown, it was postponed too long.
    Failed(End),
    /// A success changed nothing: the dependency did what is failed here, or what is about to be tried again.
    SuccessIgnored,
    /// An answer did not come in time, and the request was sent again with the same key.
    AnswerLost,
    /// A schedule of that name exists with another instant or payload.
    ScheduleConflict,
    /// A message is about a transaction that is not stored.
    UnknownTransaction,
    /// What is stored contradicts itself; nothing was done.
    CorruptRecord,
    /// A dead-letter queue got its first message.
    FirstDeadLetter,
    /// Transactions sat in an intermediate state for too long, and were brought back on their way.
    Stuck,
    /// An open breaker postpones what is due.
    BreakerPostponing,
    /// A task of the engine died; it is started again.
    TaskDied,
    /// The backend fails; the engine asks it again until it doesn't.
    BackendFails,
    /// An event can't be published, and was parked; what has its key waits behind it.
    EventParked,
    /// A stuck saga could not be compensated; the next cycle tries again.
    Uncompensated,
    /// Two sources that should agree don't.
    Discrepancy,
}

impl AlertKind {
    /// Every kind.
    pub const ALL: [Self; 17] = [
        Self::Failed(End::Exhausted),
        Self::Failed(End::Declined),
        Self::Failed(End::OutcomeUnknown),
        Self::Failed(End::PostponedTooLong),
        Self::SuccessIgnored,
        Self::AnswerLost,
        Self::ScheduleConflict,
        Self::UnknownTransaction,
        Self::CorruptRecord,
        Self::FirstDeadLetter,
        Self::Stuck,
        Self::BreakerPostponing,
        Self::TaskDied,
        Self::BackendFails,
        Self::EventParked,
        Self::Uncompensated,
        Self::Discrepancy,
    ];

    /// Returns the name used in metrics and logs: lower case, stable.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Failed(End::Exhausted) => "exhausted",
            Self::Failed(End::Declined) => "declined",
            Self::Failed(End::OutcomeUnknown) => "outcome_unknown",
            Self::Failed(End::PostponedTooLong) => "postponed_too_long",
            Self::Failed(_) => "failed",
            Self::SuccessIgnored => "success_ignored",
            Self::AnswerLost => "answer_lost",
            Self::ScheduleConflict => "schedule_conflict",
            Self::UnknownTransaction => "unknown_transaction",
            Self::CorruptRecord => "corrupt_record",
            Self::FirstDeadLetter => "first_dead_letter",
            Self::Stuck => "stuck",
            Self::BreakerPostponing => "breaker_postponing",
            Self::TaskDied => "task_died",
            Self::BackendFails => "backend_fails",
            Self::EventParked => "event_parked",
            Self::Uncompensated => "uncompensated",
            Self::Discrepancy => "discrepancy",
        }
    }
}
