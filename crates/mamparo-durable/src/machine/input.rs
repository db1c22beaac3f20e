//! What can reach a transaction.

use std::time::Duration;

use super::{Label, Utc};

/// Something that reaches a transaction, for [`decide`](super::decide) to judge.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Input {
    /// An answer to an attempt (handler A).
    Answer(Answer),
    /// A schedule is due (handler B).
    Fire(Fire),
    /// The schedule of (attempt, seq) exists now.
    Confirmed {
        /// The attempt.
        attempt: u32,
        /// Which of its schedules.
        seq: u32,
    },
    /// The request of (attempt, seq) has left.
    Published {
        /// The attempt.
        attempt: u32,
        /// Which of its schedules had fired.
        seq: u32,
    },
    /// It was resolved otherwise: by a person, or a correction.
    Resolve {
        /// Who, or why.
        reason: Option<Label>,
    },
    /// An operator calls it off.
    Cancel {
        /// Who, or why.
        reason: Option<Label>,
    },
    /// An operator gives the waiting attempt another instant.
    Move {
        /// Which one.
        to: Utc,
        /// Who, or why.
        reason: Option<Label>,
    },
    /// An operator wants the waiting attempt to be made now.
    FireNow {
        /// Who, or why.
        reason: Option<Label>,
    },
    /// The dependency's breaker puts the waiting attempt off, before it is due.
    Postpone {
        /// Not before then, if that is known.
        until: Option<Utc>,
    },
    /// The reconciler found it, and asks whether it is stuck.
    Reconcile(Patience),
}

/// What the dependency said to one send of an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Answer {
    /// The attempt that it answers.
    pub attempt: u32,
    /// The schedule's number with which that attempt was sent; 0 for the original.
    pub seq: u32,
    /// What it means.
    pub outcome: Outcome,
    /// Why, in the dependency's words; policies may look at it.
    pub reason: Option<Label>,
    /// The dependency asks not to be sent the next attempt before then.
    pub not_before: Option<Utc>,
}

impl Answer {
    /// Makes an answer to the send (attempt, seq).
    #[must_use]
    pub const fn new(attempt: u32, seq: u32, outcome: Outcome) -> Self {
        Self {
            attempt,
            seq,
            outcome,
            reason: None,
            not_before: None,
        }
    }

    /// Says why.
    #[must_use]
    pub fn with_reason(mut self, reason: impl Into<Label>) -> Self {
        self.reason = Some(reason.into());
        self
    }

    /// Says that the dependency asks for a wait until then.
    #[must_use]
    pub const fn not_before(mut self, instant: Utc) -> Self {
        self.not_before = Some(instant);
        self
    }
}

/// What an answer means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// Done.
    Success,
    /// Not now: a business refusal, that spends an attempt.
    Refused,
    /// Never: a refusal that no later attempt changes.
    Declined,
    /// No business answer at all: a timeout, a reset, a 5xx after the call plane gave up. Spends no attempt.
    Technical,
}

impl Outcome {
    /// Every outcome.
    pub const ALL: [Self; 4] = [
        Self::Success,
        Self::Refused,
        Self::Declined,
        Self::Technical,
    ];

    /// Returns the name that is stored and sent: lower case, stable.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Refused => "refused",
            Self::Declined => "declined",
            Self::Technical => "technical",
        }
    }

    /// Reads such a name; `None` for any other text.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|outcome| outcome.as_str() == name)
    }
}

/// A schedule that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Fire {
    /// The attempt to make.
    pub attempt: u32,
    /// Which of its schedules this was.
    pub seq: u32,
    /// What the dependency's breaker says, asked when the fire was taken.
    pub gate: Gate,
}

impl Fire {
    /// Which schedule it is of, where the reconciler gives up on the attempt's answer: none has that number.
    pub(crate) const GIVES_UP: u32 = u32::MAX;

    /// Makes the fire of (attempt, seq), with a breaker that lets it pass.
    #[must_use]
    pub const fn new(attempt: u32, seq: u32) -> Self {
        Self {
            attempt,
            seq,
            gate: Gate::Pass,
        }
    }

    /// Says what the breaker says.
    #[must_use]
    pub const fn with_gate(mut self, gate: Gate) -> Self {
        self.gate = gate;
        self
    }
}

/// Whether the dependency's breaker lets an attempt pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Gate {
    /// It does.
    #[default]
    Pass,
    /// It is open: the attempt is postponed, and not spent.
    Postpone {
        /// Not before then, if that is known.
        until: Option<Utc>,
    },
}

/// For how long a transaction may stay as it is before the reconciler takes it for stuck: twice the longest latency that is
/// expected.
///
/// ```
/// use mamparo_durable::machine::Patience;
/// use std::time::Duration;
/// let patience = Patience::default();
/// assert_eq!(patience.in_flight, Duration::from_secs(3600));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Patience {
    /// In `SCHEDULING`, since it was last written; 60 s by default.
    pub scheduling: Duration,
    /// In `SCHEDULED`, since it was due, and since it was last written; 60 s by default.
    pub scheduled: Duration,
    /// In `SENDING`, since it was last written; 60 s by default.
    pub sending: Duration,
    /// In `IN_FLIGHT`, since it was last written: the longest that an answer may take; 1 h by default.
    pub in_flight: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        let minute = Duration::from_secs(60);
        Self {
            scheduling: minute,
            scheduled: minute,
            sending: minute,
            in_flight: 60 * minute,
        }
    }
}
