//! The rejections of a full bulkhead.

use std::time::Duration;

use mamparo_core::{Dependency, Reason, Rejection};

/// No place is free, nor one in the queue.
pub(super) const fn full(dependency: Dependency) -> Rejection {
    Rejection::refused(Reason::BulkheadFull, dependency)
}

/// None came free in the time that the call could wait.
pub(super) const fn waited(dependency: Dependency, limit: Duration) -> Rejection {
    full(dependency).with_limit(limit)
}
