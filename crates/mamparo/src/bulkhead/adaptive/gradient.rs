//! Gradient2: the latency against the lowest one.

use mamparo_core::InvalidSetting;

use super::window::{LimitAlgorithm, Window};

/// A limit never falls below half of what it was in one step.
const STEEPEST: f64 = 0.5;

/// A share of an old limit and a share of the new one: a single odd window moves little.
const SMOOTHING: f64 = 0.2;

/// Falls with the slope of the latency against the baseline, and else grows by the square root of the limit.
///
/// After the algorithm of that name in Netflix's concurrency-limits; but there the latency is compared with a long-term
/// average, which takes a lasting slow-down in. Here it is the lowest that is remembered.
///
/// ```
/// use mamparo::bulkhead::Gradient2;
/// let algorithm = Gradient2::tolerating(1.5)?;
/// assert!(Gradient2::tolerating(0.9).is_err());
/// # let _ = algorithm;
/// # Ok::<(), mamparo_core::InvalidSetting>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gradient2 {
    tolerance: f64,
}

impl Gradient2 {
    /// Takes a latency of up to `tolerance` times the baseline for normal.
    ///
    /// # Errors
    ///
    /// Refuses less than 1, and more than 10: a tenfold latency must not pass for normal.
    pub fn tolerating(tolerance: f64) -> Result<Self, InvalidSetting> {
        if !(1.0..=10.0).contains(&tolerance) {
            let mend = "must be between 1 and 10";
            return Err(InvalidSetting::new("tolerance", tolerance, mend));
        }
        Ok(Self { tolerance })
    }
}

impl Default for Gradient2 {
    /// Tolerates twice the baseline: the mean of a healthy dependency varies by less.
    fn default() -> Self {
        Self { tolerance: 2.0 }
    }
}

impl LimitAlgorithm for Gradient2 {
    fn next(&self, limit: f64, window: &Window) -> f64 {
        let gradient = match window.slowdown() {
            _ if window.is_overloaded() => STEEPEST,
            Some(slowdown) => (self.tolerance / slowdown).clamp(STEEPEST, 1.0),
            None => return limit,
        };
        let wanted = limit * gradient + limit.sqrt();
        limit * (1.0 - SMOOTHING) + wanted * SMOOTHING
    }
}
