//! What a decision depends on besides the transaction and its input.

use super::{Guard, Utc};
use crate::policy::Policy;

/// The instant, a draw and the policy: whatever a decision would otherwise have to ask for.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    pub(super) now: Utc,
    pub(super) draw: f64,
    pub(super) policy: &'a Policy,
    pub(super) factor: f64,
    #[cfg(test)]
    pub(crate) without: Option<Guard>,
}

impl<'a> Context<'a> {
    /// Takes the instant, a uniform draw from [−1, 1] for the jitter, and the policy.
    ///
    /// A draw outside of its range is brought into it; what is not a number is 0.
    #[must_use]
    pub const fn new(now: Utc, draw: f64, policy: &'a Policy) -> Self {
        Self {
            now,
            draw,
            policy,
            factor: 1.0,
            #[cfg(test)]
            without: None,
        }
    }

    /// Stretches waits after a refusal by a factor, as [`Adaptive`](crate::policy::Adaptive) learns it; 1 by default.
    #[must_use]
    pub const fn with_factor(mut self, factor: f64) -> Self {
        self.factor = factor;
        self
    }

    /// Tells whether a rule holds: always, but in tests that take one away.
    #[cfg(not(test))]
    #[expect(clippy::unused_self, reason = "a test's context can lack a guard")]
    pub(super) const fn holds(&self, _: Guard) -> bool {
        true
    }

    #[cfg(test)]
    pub(crate) fn holds(&self, guard: Guard) -> bool {
        self.without != Some(guard)
    }
}
