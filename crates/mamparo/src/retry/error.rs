//! The error of an operation that failed for good.

use std::error::Error;
use std::fmt::{self, Display};

use mamparo_core::{BoxError, Dependency, Rejection, ResponseHead, chain};

use super::Ending;

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
    pub(super) fn new(
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

/// Hands on a local refusal, with the head of the response that was given up before it.
pub(super) fn refused(error: BoxError, last_response: Option<Box<ResponseHead>>) -> BoxError {
    let Some(head) = last_response else {
        return error;
    };
    match error.downcast::<Rejection>() {
        Ok(rejection) => rejection.with_last_response(*head).into(),
        Err(error) => error,
    }
}
