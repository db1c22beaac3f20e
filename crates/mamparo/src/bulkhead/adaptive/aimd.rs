//! Additive increase, multiplicative decrease.

use std::time::Duration;

use mamparo_core::InvalidSetting;

use super::window::{LimitAlgorithm, Window};

/// Adds one place after each good window, and takes a share of all away after an overloaded one: as TCP does (RFC 5681).
///
/// It needs no baseline, and so has none that could be wrong. Tell it from which latency on a dependency is
/// overloaded if failures come too late to say so.
///
/// ```
/// use mamparo::bulkhead::Aimd;
/// use std::time::Duration;
///
/// let algorithm = Aimd::new(0.9)?.slower_than(Duration::from_millis(500));
/// assert!(Aimd::new(1.0).is_err());
/// # let _ = algorithm;
/// # Ok::<(), mamparo_core::InvalidSetting>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Aimd {
    factor: f64,
    slow: Option<Duration>,
}

impl Aimd {
    /// Multiplies the limit by `factor` after an overloaded window.
    ///
    /// # Errors
    ///
    /// Refuses a factor that is not between 0.5 and 1: the limit would collapse, or not fall.
    pub fn new(factor: f64) -> Result<Self, InvalidSetting> {
        if !(0.5..1.0).contains(&factor) {
            let mend = "must be at least 0.5 and less than 1";
            return Err(InvalidSetting::new("factor", factor, mend));
        }
        Ok(Self { factor, slow: None })
    }

    /// Takes a mean latency above this for overload too; none by default.
    #[must_use]
    pub const fn slower_than(mut self, latency: Duration) -> Self {
        self.slow = Some(latency);
        self
    }
}

impl Default for Aimd {
    /// Takes a tenth away.
    fn default() -> Self {
        Self {
            factor: 0.9,
            slow: None,
        }
    }
}

impl LimitAlgorithm for Aimd {
    fn next(&self, limit: f64, window: &Window) -> f64 {
        let slow = self.slow.zip(window.latency);
        if window.is_overloaded() || slow.is_some_and(|(slow, latency)| latency > slow) {
            limit * self.factor
        } else {
            limit + 1.0
        }
    }
}
