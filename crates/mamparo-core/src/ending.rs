//! How an operation ended that could be sent again.

use std::error::Error;
use std::fmt::{self, Display};

use http::Response;

use crate::{BoxError, Dependency, NotResent, ResponseHead, chain};

/// How a retry ended its operation: found in a response's extensions, or in a [`RetryError`].
///
/// A response that came with the first attempt and needs no word carries none.
///
/// ```
/// use mamparo_core::Ending;
///
/// let response = http::Response::new(());
/// assert!(Ending::of(&response).is_none());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ending {
    attempts: u32,
    not_resent: Option<NotResent>,
    indeterminate: bool,
}

impl Ending {
    /// Notes how many attempts were made, why a failure was not sent again, and whether it may have taken effect.
    #[must_use]
    pub const fn new(attempts: u32, not_resent: Option<NotResent>, indeterminate: bool) -> Self {
        Self {
            attempts,
            not_resent,
            indeterminate,
        }
    }

    /// Finds how the operation of a response ended.
    #[must_use]
    pub fn of<B>(response: &Response<B>) -> Option<&Self> {
        response.extensions().get()
    }

    /// Returns how many attempts were made.
    #[must_use]
    pub const fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Returns why a failure was not sent again; none when the last attempt succeeded.
    #[must_use]
    pub const fn not_resent(&self) -> Option<NotResent> {
        self.not_resent
    }

    /// Tells whether the request may have taken effect although it failed, and could not safely be sent again.
    #[must_use]
    pub const fn is_indeterminate(&self) -> bool {
        self.indeterminate
    }
}

/// An operation failed: with which dependency, after how many attempts, and whether it may have taken effect.
///
/// The last attempt's error is its `source`.
#[derive(Debug)]
pub struct RetryError {
    dependency: Dependency,
    ending: Ending,
    last_response: Option<Box<ResponseHead>>,
    source: BoxError,
}

impl RetryError {
    /// Notes how an operation failed, and its last attempt's error.
    #[must_use]
    pub fn new(
        dependency: Dependency,
        ending: Ending,
        last_response: Option<Box<ResponseHead>>,
        source: BoxError,
    ) -> Self {
        Self {
            dependency,
            ending,
            last_response,
            source,
        }
    }

    /// Finds it in an error or its causes.
    #[must_use]
    pub fn of<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Self> {
        chain::find(error)
    }

    /// Returns how the operation ended.
    #[must_use]
    pub const fn ending(&self) -> Ending {
        self.ending
    }

    /// Returns the dependency that was called.
    #[must_use]
    pub const fn dependency(&self) -> Dependency {
        self.dependency
    }

    /// Returns status and headers of the last real response, given up for a resend that then failed.
    #[must_use]
    pub fn last_response(&self) -> Option<&ResponseHead> {
        self.last_response.as_deref()
    }
}

impl Display for RetryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let attempts = self.ending.attempts();
        let plural = if attempts == 1 { "" } else { "s" };
        write!(
            f,
            "{}: failed after {attempts} attempt{plural}",
            self.dependency
        )?;
        if self.ending.is_indeterminate() {
            f.write_str(", and may have taken effect: look before you send it again")?;
        }
        if let Some(reason) = self.ending.not_resent().and_then(NotResent::says) {
            write!(f, ", and was not sent again: {reason}")?;
        }
        if let Some(head) = &self.last_response {
            write!(f, " (the last answer was {})", head.status)?;
        }
        Ok(())
    }
}

impl Error for RetryError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.source)
    }
}
