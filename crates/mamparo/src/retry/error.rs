//! The errors of an operation that is not sent again.

use mamparo_core::{BoxError, Dependency, Ending, Reason, Rejection, ResponseHead, RetryError};

/// A resend's time came after the deadline.
pub(super) fn too_late(dependency: Dependency) -> Rejection {
    Rejection::refused(Reason::DeadlineExceeded, dependency)
}

/// The last resend was not sent: a rejection carries the head of the response that was given up before it.
pub(super) fn not_sent(
    dependency: Dependency,
    ending: Ending,
    mut last_response: Option<Box<ResponseHead>>,
    error: BoxError,
) -> BoxError {
    let source = match error.downcast::<Rejection>() {
        Ok(rejection) => match last_response.take() {
            Some(head) => rejection.with_last_response(*head).into(),
            None => rejection,
        },
        Err(error) => error,
    };
    RetryError::new(dependency, ending, last_response, source).into()
}
