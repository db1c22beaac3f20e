//! What an algorithm sees, and says.

use std::fmt::Debug;
use std::time::Duration;

/// Says how far the limit should be moved after a window of calls: pure.
///
/// ```
/// use mamparo::bulkhead::{LimitAlgorithm, Window};
///
/// /// Halves the limit when anything was overloaded.
/// #[derive(Debug)]
/// struct Halving;
///
/// impl LimitAlgorithm for Halving {
///     fn next(&self, limit: f64, window: &Window) -> f64 {
///         if window.overloaded > 0 { limit / 2.0 } else { limit + 1.0 }
///     }
/// }
/// # let _: &dyn LimitAlgorithm = &Halving;
/// ```
pub trait LimitAlgorithm: Debug + Send + Sync + 'static {
    /// Returns the limit after `window`, given the one that was in force.
    ///
    /// It is kept within its bounds by whoever asks; what is not a number leaves the limit as it is.
    fn next(&self, limit: f64, window: &Window) -> f64;
}

/// Some calls that ended one after the other.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Window {
    /// How many succeeded.
    pub succeeded: u32,
    /// How many failed in a way that says that the dependency has too much to do.
    pub overloaded: u32,
    /// The mean latency of those that succeeded, if any did.
    pub latency: Option<Duration>,
    /// The lowest mean latency of any window that is remembered, this one included.
    pub baseline: Option<Duration>,
    /// The most calls that were in flight at once.
    pub most_in_flight: usize,
}

/// One failure for overload in so many calls is more than chance.
const OVERLOAD: u32 = 20;

impl Window {
    /// Tells whether at least one call in twenty failed for overload.
    ///
    /// ```
    /// use mamparo::bulkhead::Window;
    /// let mut window = Window::default();
    /// (window.succeeded, window.overloaded) = (20, 1);
    /// assert!(!window.is_overloaded());
    /// window.overloaded = 2;
    /// assert!(window.is_overloaded());
    /// ```
    #[must_use]
    pub const fn is_overloaded(&self) -> bool {
        let all = self.succeeded.saturating_add(self.overloaded);
        self.overloaded.saturating_mul(OVERLOAD) >= all && self.overloaded > 0
    }

    /// Returns how many times the baseline the latency is: 1 at best, none while there is nothing to compare.
    #[must_use]
    pub fn slowdown(&self) -> Option<f64> {
        let (latency, baseline) = (self.latency?, self.baseline?);
        let slowdown = latency.as_secs_f64() / baseline.as_secs_f64();
        slowdown.is_finite().then(|| slowdown.max(1.0))
    }
}
