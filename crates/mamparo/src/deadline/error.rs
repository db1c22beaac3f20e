//! The rejections of an expired deadline.

use std::time::Duration;

use mamparo_core::{CallContext, Reason, Rejection};

/// Nothing remained when the call was made, or it never got further than our own queue.
pub(super) fn refused(context: &CallContext) -> Rejection {
    Rejection::refused(Reason::DeadlineExceeded, context.dependency())
}

/// The deadline passed while the call was under way.
pub(super) fn cut(context: &CallContext, limit: Duration) -> Rejection {
    Rejection::cut(Reason::DeadlineExceeded, context.dependency()).with_limit(limit)
}
