//! What becomes of a message: pure.

use std::time::Duration;

use mamparo_core::{Class, Kind, Resend, Verdict};

use super::Panics;

/// What came of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The handler has ended.
    Judged(Verdict),
    /// It took too long.
    TimedOut,
    /// It panicked.
    Panicked,
    /// It was not asked: the body is too big.
    TooBig,
}

/// What becomes of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Settled {
    /// It is done with.
    Done,
    /// It is tried again, at the earliest after this hint of the handler's.
    Retry {
        /// Attempts made, this one included.
        attempts: u32,
        /// The wait that the handler asks for.
        hint: Option<Duration>,
    },
    /// Nobody can handle it.
    Dead {
        /// Attempts made, this one included.
        attempts: u32,
        /// Why.
        reason: DeadReason,
    },
}

/// Why a message is a dead letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DeadReason {
    /// No other attempt would mend it.
    Permanent,
    /// It has failed as often as is allowed.
    Exhausted,
    /// Its handler panicked.
    Panic,
    /// It is bigger than is read.
    TooBig,
}

impl DeadReason {
    /// Returns the name that headers and logs have: lower case, stable.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Permanent => "permanent",
            Self::Exhausted => "exhausted",
            Self::Panic => "panic",
            Self::TooBig => "too-big",
        }
    }
}

/// Decides, given which attempt it was, from 1.
pub(crate) fn settle(
    outcome: &Outcome,
    attempt: u32,
    max_attempts: u32,
    panics: Panics,
) -> Settled {
    let dead = |reason| Settled::Dead {
        attempts: attempt,
        reason,
    };
    let hint = match outcome {
        Outcome::TooBig => return dead(DeadReason::TooBig),
        Outcome::Panicked if panics == Panics::Permanent => return dead(DeadReason::Panic),
        Outcome::Judged(verdict) if verdict.class() == Class::Success => return Settled::Done,
        Outcome::Judged(verdict) if is_permanent(*verdict) => return dead(DeadReason::Permanent),
        Outcome::Judged(verdict) => verdict.hint(),
        Outcome::TimedOut | Outcome::Panicked => None,
    };
    if attempt >= max_attempts {
        return dead(DeadReason::Exhausted);
    }
    Settled::Retry {
        attempts: attempt,
        hint,
    }
}

/// What a layer refuses, or cuts when the time is over, says nothing against the message.
fn is_permanent(verdict: Verdict) -> bool {
    let judged = verdict.kind().is_some_and(|kind| kind != Kind::Timeout);
    judged && verdict.resend() == Resend::Never && !verdict.is_forbidden()
}
