//! What a request gets: the smallest of what its caller leaves and what the server allows.

use std::time::Duration;

use super::ServerDeadlinePolicy;
use crate::wire::codec::Admission;

/// What a request gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Grant {
    /// How long it may take; zero when it came too late.
    pub(super) limit: Duration,
    /// What its caller asked for, where that was more.
    pub(super) clamped_from: Option<Duration>,
}

/// Grants a request its time.
#[inline]
pub(super) fn grant(policy: ServerDeadlinePolicy, admission: Admission) -> Grant {
    let asked = match admission {
        Admission::Expired => Some(Duration::ZERO),
        Admission::Within(asked) | Admission::Doubted(asked) => asked,
    };
    let maximum = policy.maximum();
    Grant {
        limit: asked.unwrap_or(policy.default_limit()).min(maximum),
        clamped_from: asked.filter(|asked| *asked > maximum),
    }
}
