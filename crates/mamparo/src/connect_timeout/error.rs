//! The rejection of a connection that took too long.

use std::time::Duration;

use mamparo_core::{Dependency, Reason, Rejection};

/// No connection was there in time, so nothing was sent.
pub(super) fn too_slow(dependency: Dependency, limit: Duration) -> Rejection {
    Rejection::refused(Reason::ConnectTimedOut, dependency).with_limit(limit)
}
