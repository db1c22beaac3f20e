//! The rejections of a rate limit.

use std::time::Duration;

use mamparo_core::{Dependency, Reason, Rejection};

/// What the limit does not let pass now would pass after `wait`.
pub(super) const fn limited(dependency: Dependency, wait: Duration) -> Rejection {
    Rejection::refused(Reason::RateLimited, dependency).with_retry_after(wait)
}

/// What costs more than the burst would never pass.
pub(super) const fn too_costly(dependency: Dependency) -> Rejection {
    Rejection::refused(Reason::AboveBurst, dependency)
}
