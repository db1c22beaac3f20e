//! Why a store did not do what it was asked.

use std::error::Error;
use std::fmt;

use mamparo_core::BoxError;

/// A store did not do what it was asked.
///
/// ```
/// use mamparo::idempotency::{StoreError, StoreErrorKind};
///
/// let error = StoreError::new(StoreErrorKind::Full, "database or disk is full");
/// assert_eq!(error.kind(), StoreErrorKind::Full);
/// assert_eq!(error.to_string(), "the idempotency store has no room: free some, or sweep it more often");
/// ```
#[derive(Debug)]
pub struct StoreError {
    kind: StoreErrorKind,
    source: BoxError,
}

/// What kept a store from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// It can't be reached, or broke off: what was asked may have been done.
    Unavailable,
    /// It did not answer in time: what was asked may have been done, or may yet be.
    TimedOut,
    /// As many requests wait for it as may.
    Overloaded,
    /// Somebody else has it locked.
    Locked,
    /// It has no room.
    Full,
    /// What it holds was not written by this program, or by a newer version of it.
    Incompatible,
    /// What it holds is damaged.
    Corrupt,
    /// Anything else.
    Other,
}

impl StoreErrorKind {
    /// Returns the name used in metrics and logs: lower case, stable.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unavailable => "unavailable",
            Self::TimedOut => "timed_out",
            Self::Overloaded => "overloaded",
            Self::Locked => "locked",
            Self::Full => "full",
            Self::Incompatible => "incompatible",
            Self::Corrupt => "corrupt",
            Self::Other => "other",
        }
    }

    const fn says(self) -> &'static str {
        match self {
            Self::Unavailable => "can't be reached: see that it runs, and its address",
            Self::TimedOut => "did not answer in time",
            Self::Overloaded => "has as many requests waiting as may wait",
            Self::Locked => "is locked by somebody else: look for a long transaction",
            Self::Full => "has no room: free some, or sweep it more often",
            Self::Incompatible => {
                "was written by a newer version or another program: give this one a store of its own"
            }
            Self::Corrupt => "holds what can't be read: restore it, or begin with an empty one",
            Self::Other => "failed",
        }
    }
}

impl StoreError {
    /// Says what kept the store from it, and the store's own words.
    #[must_use]
    pub fn new(kind: StoreErrorKind, source: impl Into<BoxError>) -> Self {
        let source = source.into();
        Self { kind, source }
    }

    /// Returns what kept the store from it.
    #[must_use]
    pub const fn kind(&self) -> StoreErrorKind {
        self.kind
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the idempotency store {}", self.kind.says())
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.source)
    }
}
