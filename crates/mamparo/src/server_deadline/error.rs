//! The rejections of a server's deadline.

use std::time::Duration;

use mamparo_core::{Dependency, Reason, Rejection};

/// The handler was not called.
pub(super) fn refused(reason: Reason) -> Rejection {
    Rejection::refused(reason, Dependency::UNNAMED)
}

/// The deadline passed while the handler worked.
pub(super) fn cut(limit: Duration) -> Rejection {
    Rejection::cut(Reason::DeadlineExceeded, Dependency::UNNAMED).with_limit(limit)
}
