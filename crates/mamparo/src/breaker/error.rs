//! The rejection of an open breaker.

use mamparo_core::{Dependency, Reason, Rejection};

use super::ticket::Refusal;

/// The call was not let through.
pub(super) fn refused(refusal: Refusal, dependency: Dependency) -> Rejection {
    let rejection = Rejection::refused(Reason::BreakerOpen, dependency);
    match refusal.retry_after {
        Some(wait) => rejection.with_retry_after(wait),
        None => rejection,
    }
}
