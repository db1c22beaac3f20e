use super::{Backoff, Jitter};
use crate::InvalidSetting;
use std::time::Duration;

/// The longest cap that is accepted, 24 hours: what waits longer belongs in a database, not in a task.
pub const MAX_CAP: Duration = Duration::from_secs(24 * 60 * 60);

/// Collects the settings of a [`Backoff`]; what is not set keeps its default.
#[derive(Clone, Debug, Default)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct BackoffBuilder {
    backoff: Backoff,
}

impl BackoffBuilder {
    /// Sets the wait before the first resend, unjittered; 100 ms by default.
    pub fn base(mut self, base: Duration) -> Self {
        self.backoff.base = base;
        self
    }

    /// Sets how much longer each wait is than the one before; 2 by default, and unused by decorrelated jitter.
    pub fn factor(mut self, factor: f64) -> Self {
        self.backoff.factor = factor;
        self
    }

    /// Sets the longest wait; 2 s by default, at most [`MAX_CAP`].
    pub fn cap(mut self, cap: Duration) -> Self {
        self.backoff.cap = cap;
        self
    }

    /// Sets how waits are spread; [`Jitter::Full`] by default.
    pub fn jitter(mut self, jitter: Jitter) -> Self {
        self.backoff.jitter = jitter;
        self
    }

    /// Checks the settings and returns the backoff.
    ///
    /// # Errors
    ///
    /// [`InvalidSetting`] when the base is zero, the cap is shorter than the base or longer than [`MAX_CAP`], or
    /// the factor is below 1, infinite or not a number.
    ///
    /// ```
    /// use mamparo_core::Backoff;
    /// let error = Backoff::builder().factor(0.5).build().unwrap_err();
    /// assert_eq!(error.to_string(), "backoff.factor = 0.5 is refused: must be finite and at least 1");
    /// ```
    pub fn build(self) -> Result<Backoff, InvalidSetting> {
        let Backoff {
            base, factor, cap, ..
        } = self.backoff;
        let refuse = |setting, value: Duration, reason| {
            Err(InvalidSetting::new(setting, format!("{value:?}"), reason))
        };
        if base.is_zero() {
            return refuse("backoff.base", base, "must be longer than zero");
        }
        if cap < base {
            return refuse("backoff.cap", cap, "must not be shorter than backoff.base");
        }
        if cap > MAX_CAP {
            return refuse("backoff.cap", cap, "must be at most 24 hours");
        }
        if !factor.is_finite() || factor < 1.0 {
            let reason = "must be finite and at least 1";
            return Err(InvalidSetting::new("backoff.factor", factor, reason));
        }
        Ok(self.backoff)
    }
}
