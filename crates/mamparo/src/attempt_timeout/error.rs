//! The rejections of an attempt's limit.

use mamparo_core::{Dependency, Reason, Rejection};

use super::state::Limit;

/// The limit was reached before an answer was there; `sent` tells whether the dependency may have seen the request.
pub(super) fn reached(limit: Limit, dependency: Dependency, sent: bool) -> Rejection {
    let reason = match limit {
        Limit::Timeout(_) => Reason::AttemptTimedOut,
        Limit::Deadline(_) | Limit::Spent | Limit::None => Reason::DeadlineExceeded,
    };
    let rejection = if sent {
        Rejection::cut(reason, dependency)
    } else {
        Rejection::refused(reason, dependency)
    };
    match limit.duration() {
        Some(limit) => rejection.with_limit(limit),
        None => rejection,
    }
}
