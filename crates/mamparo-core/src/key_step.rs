//! What happened to an idempotency key on a server.

/// What happened to an idempotency key on a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KeyStep {
    /// It was started, and its request is run.
    Started,
    /// It was started anew: an earlier run's lease was over, and may have taken effect.
    StartedAgain,
    /// Its answer is stored.
    Completed,
    /// The answer is stored that the handler's own transaction has brought.
    CompletedInTransaction,
    /// It is completed without an answer: that, or the request, was too large, or broke off.
    CompletedWithoutAnswer,
    /// It was forgotten: nothing was done, or its answer is none that is stored.
    Released,
    /// The stored answer was given again.
    Replayed,
    /// Its request was refused: the first is being run.
    InProgress,
    /// Its request was refused: the key belongs to another.
    Mismatch,
    /// Its request was refused: it was run, and its answer was not kept.
    NotKept,
    /// Its request was refused: it was begun, and nobody knows how it ended.
    Indeterminate,
    /// A request was refused that has no key.
    Missing,
    /// A request was refused whose key can't be read.
    Malformed,
    /// A request was refused of which nobody can tell whose key it is.
    NoPrincipal,
    /// A request was refused whose body broke off.
    Unreadable,
    /// Its caller went away, and its run is finished without it.
    LeftBehind,
    /// Its run ended without an answer: what it has done is not known.
    Abandoned,
    /// Somebody else took it over while it was run: the effect may have happened twice.
    Lost,
    /// Its request was refused: the store failed.
    StoreFailed,
    /// The store failed, and its request was run unprotected.
    RunUnprotected,
    /// Its request was run, and the store failed to take the answer.
    NotRecorded,
    /// The store failed to renew its lease.
    NotRenewed,
    /// The store forgets all keys when this process ends.
    Volatile,
}

impl KeyStep {
    /// Returns the name used in metrics and logs: lower case, stable.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::StartedAgain => "started_again",
            Self::Completed => "completed",
            Self::CompletedInTransaction => "completed_in_transaction",
            Self::CompletedWithoutAnswer => "completed_without_answer",
            Self::Released => "released",
            Self::Replayed => "replayed",
            Self::InProgress => "in_progress",
            Self::Mismatch => "mismatch",
            Self::NotKept => "not_kept",
            Self::Indeterminate => "indeterminate",
            Self::Missing => "missing",
            Self::Malformed => "malformed",
            Self::NoPrincipal => "no_principal",
            Self::Unreadable => "unreadable",
            Self::LeftBehind => "left_behind",
            Self::Abandoned => "abandoned",
            Self::Lost => "lost",
            Self::StoreFailed => "store_failed",
            Self::RunUnprotected => "run_unprotected",
            Self::NotRecorded => "not_recorded",
            Self::NotRenewed => "not_renewed",
            Self::Volatile => "volatile",
        }
    }

    /// Tells whether an operator should look: an effect may have been lost, or may happen twice.
    #[must_use]
    pub const fn is_alert(self) -> bool {
        matches!(
            self,
            Self::Indeterminate
                | Self::Lost
                | Self::StoreFailed
                | Self::RunUnprotected
                | Self::NotRecorded
                | Self::Volatile
        )
    }
}
