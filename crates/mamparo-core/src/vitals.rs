//! What the layers of dependencies say of themselves at one instant, for whoever collects figures.

use std::fmt;

use crate::breaker::BreakerState;
use crate::{Budget, Dependency};

/// What the layers of one dependency say of themselves now.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Vitals {
    /// The dependency.
    pub dependency: Dependency,
    /// The state of its circuit breaker, the worse one where it has two; none where they are off.
    pub breaker: Option<BreakerState>,
    /// The places of its bulkhead; none where it is off.
    pub places: Option<Places>,
    /// What pays for its resends.
    pub budget: Option<Budget>,
}

/// The places of a bulkhead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// How many calls hold one.
    pub in_flight: usize,
    /// How many calls wait for one.
    pub queued: usize,
    /// How many there are.
    pub limit: usize,
}

impl Vitals {
    /// Begins with a dependency of which nothing is known.
    #[must_use]
    pub const fn of(dependency: Dependency) -> Self {
        Self {
            dependency,
            breaker: None,
            places: None,
            budget: None,
        }
    }
}

/// Knows the dependencies that there are now, and what their layers say.
///
/// ```
/// use mamparo_core::vitals::{Monitored, Vitals};
/// use mamparo_core::{Budget, Dependency};
///
/// #[derive(Debug)]
/// struct One(Budget);
///
/// impl Monitored for One {
///     fn each(&self, tell: &mut dyn FnMut(&Vitals)) {
///         let mut vitals = Vitals::of(Dependency::named("catalog"));
///         vitals.budget = Some(self.0.clone());
///         tell(&vitals);
///     }
/// }
/// ```
pub trait Monitored: fmt::Debug + Send + Sync + 'static {
    /// Tells each dependency's, as it is now.
    fn each(&self, tell: &mut dyn FnMut(&Vitals));
}
