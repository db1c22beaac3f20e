//! What is to be done.

use super::{AlertKind, AuditEvent, Expect, Input, Progress, Schedule};

/// What is to be done about an input: write first, then the effects in order, then the next input.
///
/// Nothing of it but the write changes the transaction, and everything after the write may be done twice without harm.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[must_use = "a decision does nothing by itself"]
pub struct Decision {
    /// The conditional write. If it misses, nothing of the decision holds: read again, decide again.
    pub write: Option<Write>,
    /// What follows, in this order.
    pub effects: Vec<Effect>,
    /// What is to be decided after the effects, on what was written.
    pub then: Option<Input>,
    /// What kind of decision it was.
    pub note: Note,
}

impl Decision {
    /// Nothing to do, and why.
    pub(super) const fn nothing(note: Note) -> Self {
        Self {
            write: None,
            effects: Vec::new(),
            then: None,
            note,
        }
    }

    pub(super) fn write(write: Write) -> Self {
        Self {
            write: Some(write),
            ..Self::nothing(Note::Applied)
        }
    }

    pub(super) fn effect(mut self, effect: Effect) -> Self {
        self.effects.push(effect);
        self
    }

    pub(super) fn effects(mut self, effects: impl IntoIterator<Item = Effect>) -> Self {
        self.effects.extend(effects);
        self
    }

    pub(super) fn then(mut self, input: Input) -> Self {
        self.then = Some(input);
        self
    }

    pub(super) const fn noted(mut self, note: Note) -> Self {
        self.note = note;
        self
    }
}

/// One transition: it happens if what is stored is as expected, and else not at all.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Write {
    /// The condition.
    pub expect: Expect,
    /// What is stored then.
    pub to: Progress,
    /// The row of history that is written with it.
    pub event: AuditEvent,
}

impl Write {
    /// Puts a write together.
    #[must_use]
    pub const fn new(expect: Expect, to: Progress, event: AuditEvent) -> Self {
        Self { expect, to, event }
    }
}

/// What follows a write. Done twice, it is as if done once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Effect {
    /// Make this schedule. That it exists with the same instant is success.
    Schedule(Schedule),
    /// Delete the schedule of (attempt, seq), if it is there. Nothing depends on it.
    Unschedule {
        /// The attempt.
        attempt: u32,
        /// Which of its schedules.
        seq: u32,
    },
    /// Send the request of an attempt under its idempotency key; its answer carries (attempt, seq).
    Send {
        /// The attempt.
        attempt: u32,
        /// Which of its schedules has fired.
        seq: u32,
    },
    /// Publish the fire of (attempt, seq).
    Refire {
        /// The attempt.
        attempt: u32,
        /// Which of its schedules.
        seq: u32,
    },
    /// Tell a person.
    Alert(AlertKind),
}

/// What kind of decision it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Note {
    /// It changes the transaction.
    Applied,
    /// It takes up what someone else began.
    Resumed,
    /// It was done before.
    Already,
    /// It answers another attempt than the current one.
    Late,
    /// It fires a schedule that is not the current one.
    Obsolete,
    /// The transaction is at its end.
    Finished,
    /// The state does not allow it.
    NotAllowed,
    /// Nothing is stuck.
    NotStuck,
    /// No transaction of that id is stored.
    Unknown,
    /// What is stored contradicts itself.
    Corrupt,
}

impl Note {
    /// Returns the name used in metrics and logs: lower case, stable.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Applied => "applied",
            Self::Resumed => "resumed",
            Self::Already => "already",
            Self::Late => "late",
            Self::Obsolete => "obsolete",
            Self::Finished => "finished",
            Self::NotAllowed => "not_allowed",
            Self::NotStuck => "not_stuck",
            Self::Unknown => "unknown",
            Self::Corrupt => "corrupt",
        }
    }
}
