//! The rejections of an expired deadline.

use std::time::Duration;

use mamparo_core::{Reason, Rejection, Scope};

/// Nothing remained when the call was made, or it never got further than our own queue.
pub(super) fn refused(scope: &Scope) -> Rejection {
    Rejection::refused(Reason::DeadlineExceeded, scope.dependency())
}

/// The deadline passed while the call was under way.
pub(super) fn cut(scope: &Scope, limit: Duration) -> Rejection {
    Rejection::cut(Reason::DeadlineExceeded, scope.dependency()).with_limit(limit)
}
