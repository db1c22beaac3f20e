//! The errors of an operation that is not sent again.

use mamparo_core::{Dependency, Reason, Rejection};

/// A resend's time came after the deadline.
pub(super) fn too_late(dependency: Dependency) -> Rejection {
    Rejection::refused(Reason::DeadlineExceeded, dependency)
}
