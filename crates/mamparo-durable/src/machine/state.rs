//! The states of a transaction, and why it ended.

use std::fmt::{self, Display};

/// Where a transaction stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum State {
    /// An attempt was sent, and its answer is awaited.
    InFlight,
    /// The next attempt and its instant are stored; its schedule may not exist yet.
    Scheduling,
    /// The schedule of the next attempt exists.
    Scheduled,
    /// The attempt is claimed; its request may not have left yet.
    Sending,
    /// The end: done, by the dependency or by a person.
    Succeeded,
    /// The end: given up.
    Failed,
}

impl State {
    /// Every state, in the order of a transaction's life.
    pub const ALL: [Self; 6] = [
        Self::InFlight,
        Self::Scheduling,
        Self::Scheduled,
        Self::Sending,
        Self::Succeeded,
        Self::Failed,
    ];

    /// Tells whether nothing changes it any more.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }

    /// Tells whether an attempt waits for its instant.
    #[must_use]
    pub const fn is_waiting(self) -> bool {
        matches!(self, Self::Scheduling | Self::Scheduled)
    }

    /// Returns the name that is stored and shown: upper case, stable.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InFlight => "IN_FLIGHT",
            Self::Scheduling => "SCHEDULING",
            Self::Scheduled => "SCHEDULED",
            Self::Sending => "SENDING",
            Self::Succeeded => "SUCCEEDED",
            Self::Failed => "FAILED",
        }
    }

    /// Reads a stored name; `None` for any other text.
    ///
    /// ```
    /// use mamparo_durable::machine::State;
    /// assert!(State::ALL.iter().all(|state| State::parse(state.as_str()) == Some(*state)));
    /// ```
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == name)
    }
}

impl Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a transaction is at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum End {
    /// The dependency said that it did it.
    Answered,
    /// A person or a correction said that it is done.
    Resolved,
    /// The last attempt was refused.
    Exhausted,
    /// The dependency said that it never will.
    Declined,
    /// Nobody knows whether the dependency did it: its answers failed or were lost for too long.
    OutcomeUnknown,
    /// It was postponed too often or for too long; the dependency has not seen the attempt.
    PostponedTooLong,
    /// An operator called it off.
    Cancelled,
}

impl End {
    /// Every reason.
    pub const ALL: [Self; 7] = [
        Self::Answered,
        Self::Resolved,
        Self::Exhausted,
        Self::Declined,
        Self::OutcomeUnknown,
        Self::PostponedTooLong,
        Self::Cancelled,
    ];

    /// Returns the state that it leads to.
    #[must_use]
    pub const fn state(self) -> State {
        match self {
            Self::Answered | Self::Resolved => State::Succeeded,
            _ => State::Failed,
        }
    }

    /// Returns the name that is stored and shown: lower case, stable.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Resolved => "resolved",
            Self::Exhausted => "exhausted",
            Self::Declined => "declined",
            Self::OutcomeUnknown => "outcome unknown",
            Self::PostponedTooLong => "postponed too long",
            Self::Cancelled => "cancelled",
        }
    }

    /// Reads a stored name; `None` for any other text.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|end| end.as_str() == name)
    }
}

impl Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
