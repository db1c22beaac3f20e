//! The errors of an operation that is not sent again.

use mamparo_core::{BoxError, CallContext, Ending, Reason, Rejection, ResponseHead, RetryError};

/// A resend's time came after the deadline.
pub(super) fn too_late(context: &CallContext) -> Rejection {
    Rejection::refused(Reason::DeadlineExceeded, context.dependency())
}

/// The last resend was not sent: a rejection carries the head of the response that was given up before it.
pub(super) fn not_sent(
    context: &CallContext,
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
    RetryError::new(context.dependency(), ending, last_response, source).into()
}
