//! What is known of the operation that failed, and the errors when its fallback fails too.

use std::error::Error;
use std::fmt::{self, Display};
use std::sync::Arc;

use http::Response;
use mamparo_core::{BoxError, Dependency, Kind, Reason, Verdict};

/// How an operation failed that is fallen back from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed {
    verdict: Verdict,
    reason: Option<Reason>,
}

impl Failed {
    pub(super) const fn new(verdict: Verdict, reason: Option<Reason>) -> Self {
        Self { verdict, reason }
    }

    /// Returns what its last result means.
    pub const fn verdict(self) -> Verdict {
        self.verdict
    }

    /// Returns how the dependency failed; none when it was not asked.
    #[must_use]
    pub const fn kind(self) -> Option<Kind> {
        self.verdict.kind()
    }

    /// Returns why we refused or cut it, if we did.
    #[must_use]
    pub const fn reason(self) -> Option<Reason> {
        self.reason
    }
}

/// The mark of a response that a fallback gave: found in its extensions.
///
/// ```
/// use mamparo::fallback::FellBack;
///
/// let response = http::Response::new(());
/// assert!(FellBack::of(&response).is_none());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FellBack(pub(super) Failed);

impl FellBack {
    /// Finds the mark in a response.
    #[must_use]
    pub fn of<B>(response: &Response<B>) -> Option<&Self> {
        response.extensions().get()
    }

    /// Returns how the operation failed.
    #[must_use]
    pub const fn failed(&self) -> Failed {
        self.0
    }
}

/// The mark of the dependency's own failed response whose fallback failed too: found in its extensions.
#[derive(Clone, Debug)]
pub struct FallbackFailed(pub(super) Arc<BoxError>);

impl FallbackFailed {
    /// Finds the mark in a response.
    #[must_use]
    pub fn of<B>(response: &Response<B>) -> Option<&Self> {
        response.extensions().get()
    }

    /// Returns why the fallback failed.
    #[must_use]
    pub fn error(&self) -> &BoxError {
        &self.0
    }
}

/// An operation failed, and so did its fallback.
///
/// Why the operation failed is its `source`; why the fallback did, [`FallbackError::fallback`].
#[derive(Debug)]
pub struct FallbackError {
    dependency: Dependency,
    operation: BoxError,
    fallback: BoxError,
}

impl FallbackError {
    pub(super) const fn new(
        dependency: Dependency,
        operation: BoxError,
        fallback: BoxError,
    ) -> Self {
        Self {
            dependency,
            operation,
            fallback,
        }
    }

    /// Returns why the operation failed.
    #[must_use]
    pub const fn operation(&self) -> &BoxError {
        &self.operation
    }

    /// Returns why the fallback failed.
    #[must_use]
    pub const fn fallback(&self) -> &BoxError {
        &self.fallback
    }
}

impl Display for FallbackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            dependency,
            fallback,
            ..
        } = self;
        write!(
            f,
            "{dependency}: failed, and so did its fallback: {fallback}"
        )
    }
}

impl Error for FallbackError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.operation)
    }
}
