//! The errors of an operation that is not sent again.

use mamparo_core::{BoxError, Rejection, ResponseHead};

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
