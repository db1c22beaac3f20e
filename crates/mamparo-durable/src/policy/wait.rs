//! The length of one wait.

use std::time::Duration;

use mamparo_core::InvalidSetting;

use crate::limits::LONGEST_WAIT;

/// The least and the most that a factor learnt from outcomes may be.
pub(crate) const STRETCH: (f64, f64) = (0.5, 4.0);

/// How long to wait: grows by a factor up to a cap, then is spread by a jitter.
///
/// ```
/// use mamparo_durable::policy::Wait;
/// use std::time::Duration;
///
/// const HOUR: Duration = Duration::from_secs(3600);
/// let wait = Wait::builder().base(2 * HOUR).factor(2.0).cap(24 * HOUR).jitter(0.1).build()?;
/// assert_eq!(wait.after(1, 0.0, 1.0), 2 * HOUR);
/// assert_eq!(wait.after(3, -1.0, 1.0), 8 * HOUR - 48 * Duration::from_secs(60));
/// assert_eq!(wait.after(9, 1.0, 1.0), Duration::from_secs(95_040), "26.4 h: the jitter goes beyond the cap");
/// # Ok::<(), mamparo_core::InvalidSetting>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wait {
    base: Duration,
    factor: f64,
    cap: Duration,
    jitter: f64,
    hard_cap: bool,
}

impl Wait {
    /// Starts from 2 h, ×2, 24 h, ±10 %.
    pub const fn builder() -> WaitBuilder {
        WaitBuilder {
            wait: Self {
                base: Duration::from_secs(2 * 3600),
                factor: 2.0,
                cap: Duration::from_secs(24 * 3600),
                jitter: 0.1,
                hard_cap: false,
            },
        }
    }

    pub(crate) const fn of(base: Duration, cap: Duration) -> Self {
        let mut wait = Self::builder().wait;
        wait.base = base;
        wait.cap = cap;
        wait
    }

    /// Returns the longest wait, before the jitter.
    #[must_use]
    pub const fn cap(&self) -> Duration {
        self.cap
    }

    /// Returns the wait before the jitter of the first time.
    #[must_use]
    pub const fn base(&self) -> Duration {
        self.base
    }

    /// Returns wait number `k`, from 1, for a draw from [−1, 1]. `stretch` multiplies the base, between 0.5 and 4.
    ///
    /// The cap holds after the stretch; the jitter comes last, unless the cap is hard.
    #[must_use]
    pub fn after(&self, k: u32, draw: f64, stretch: f64) -> Duration {
        let grown = self.base.as_secs_f64() * within(stretch, STRETCH, 1.0) * self.grown(k);
        let capped = grown.min(self.cap.as_secs_f64());
        let jittered = capped * self.jitter.mul_add(within(draw, (-1.0, 1.0), 0.0), 1.0);
        let hard = if self.hard_cap {
            self.cap
        } else {
            LONGEST_WAIT
        };
        Duration::try_from_secs_f64(jittered)
            .unwrap_or(hard)
            .min(hard)
    }

    /// A part of the base as large as the jitter, to spread what would otherwise come back at one instant.
    pub(super) fn spread(&self, draw: f64) -> Duration {
        let share = f64::midpoint(within(draw, (-1.0, 1.0), 0.0), 1.0);
        self.base.mul_f64(self.jitter * share)
    }

    fn grown(&self, k: u32) -> f64 {
        let steps = i32::try_from(k.saturating_sub(1)).unwrap_or(i32::MAX);
        self.factor.powi(steps)
    }
}

/// Brings a value into its range; what is not a number is `other`.
pub(super) fn within(value: f64, (least, most): (f64, f64), other: f64) -> f64 {
    if value.is_nan() {
        other
    } else {
        value.clamp(least, most)
    }
}

/// Settings of a [`Wait`].
#[derive(Clone, Copy, Debug)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct WaitBuilder {
    wait: Wait,
}

impl WaitBuilder {
    /// Sets the first wait, without jitter; 2 h by default.
    pub const fn base(mut self, base: Duration) -> Self {
        self.wait.base = base;
        self
    }

    /// Sets how much longer each wait is than the one before; 2 by default.
    pub const fn factor(mut self, factor: f64) -> Self {
        self.wait.factor = factor;
        self
    }

    /// Sets the longest wait, before the jitter; 24 h by default, at most [`LONGEST_WAIT`].
    pub const fn cap(mut self, cap: Duration) -> Self {
        self.wait.cap = cap;
        self
    }

    /// Sets the share by which a wait is longer or shorter at random; 0.1 by default, at most 1.
    pub const fn jitter(mut self, jitter: f64) -> Self {
        self.wait.jitter = jitter;
        self
    }

    /// Sets whether the jitter may not go beyond the cap; it may by default, so that waits don't gather on the cap.
    pub const fn hard_cap(mut self, hard: bool) -> Self {
        self.wait.hard_cap = hard;
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// [`InvalidSetting`] when the base is below 1 ms, the cap shorter than the base or longer than [`LONGEST_WAIT`], the factor
    /// below 1 or not finite, or the jitter outside of 0 to 1.
    pub fn build(self) -> Result<Wait, InvalidSetting> {
        let Wait {
            base,
            factor,
            cap,
            jitter,
            ..
        } = self.wait;
        let refuse = |setting, value: Duration, reason| {
            Err(InvalidSetting::new(setting, format!("{value:?}"), reason))
        };
        if base < Duration::from_millis(1) {
            return refuse("wait.base", base, "must be at least 1 ms");
        }
        if cap < base {
            return refuse("wait.cap", cap, "must not be shorter than wait.base");
        }
        if cap > LONGEST_WAIT {
            return refuse("wait.cap", cap, "must be at most 365 days");
        }
        if !factor.is_finite() || factor < 1.0 {
            return Err(InvalidSetting::new(
                "wait.factor",
                factor,
                "must be finite and at least 1",
            ));
        }
        if !(0.0..=1.0).contains(&jitter) {
            return Err(InvalidSetting::new(
                "wait.jitter",
                jitter,
                "must be from 0 to 1",
            ));
        }
        Ok(self.wait)
    }
}
