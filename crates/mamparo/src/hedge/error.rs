//! The rejection of a hedge.

use mamparo_core::{Dependency, Reason, Rejection};

/// An attempt's time came after the deadline.
pub(super) const fn too_late(dependency: Dependency) -> Rejection {
    Rejection::refused(Reason::DeadlineExceeded, dependency)
}
