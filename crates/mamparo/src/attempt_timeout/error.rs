//! The rejections of an attempt's limit.

use std::time::Duration;

use mamparo_core::{Dependency, Reason, Rejection};

use super::state::By;

/// The limit was reached before an answer was there; `sent` tells whether the dependency may have seen the request.
pub(super) fn reached(by: By, limit: Duration, dependency: Dependency, sent: bool) -> Rejection {
    let reason = match by {
        By::Timeout => Reason::AttemptTimedOut,
        By::Deadline | By::Spent | By::Nothing => Reason::DeadlineExceeded,
    };
    let rejection = if sent {
        Rejection::cut(reason, dependency)
    } else {
        Rejection::refused(reason, dependency)
    };
    match by {
        By::Timeout | By::Deadline => rejection.with_limit(limit),
        By::Spent | By::Nothing => rejection,
    }
}
