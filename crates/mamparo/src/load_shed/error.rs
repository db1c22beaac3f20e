//! The rejection of what is shed.

use mamparo_core::{Dependency, Reason, Rejection};

use super::LoadShedPolicy;

/// The load is too high for this call.
pub(super) const fn overloaded(policy: &LoadShedPolicy, dependency: Dependency) -> Rejection {
    Rejection::refused(Reason::Overloaded, dependency).with_retry_after(policy.settings.retry_after)
}
