//! How admission grows after a breaker has closed.

use std::time::Duration;

use mamparo_core::InvalidSetting;

/// One admitted call, in the fixed point of what is saved up.
const ONE: u64 = 1 << 16;

/// How many calls a second pass whatever the curve says.
const FLOOR: u32 = 10;

/// Nobody waits longer for a breaker to be closed for good.
const LONGEST: Duration = Duration::from_secs(3600);

/// The share of calls that a breaker admits after it has closed, as it grows from a start to all of them.
///
/// A dependency that comes back is weak: caches are cold, pools empty. At `t` of the ramp's duration `T`, the share is
/// `start + (1 − start)·(t/T)^exponent`. What is admitted follows the curve exactly, not by chance. A few calls a second
/// pass all the same, so that a client that calls rarely is not held up.
///
/// ```
/// use mamparo::breaker::Ramp;
/// use std::time::Duration;
///
/// let ramp = Ramp::linear(0.25, Duration::from_secs(10))?;
/// assert_eq!(ramp.share(Duration::ZERO), 0.25);
/// assert_eq!(ramp.share(Duration::from_secs(5)), 0.625);
/// assert_eq!(ramp.share(Duration::from_secs(10)), 1.0);
/// # Ok::<(), mamparo_core::InvalidSetting>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ramp {
    start: f64,
    exponent: f64,
    duration: Duration,
    floor: u32,
}

impl Ramp {
    /// Grows evenly.
    ///
    /// # Errors
    ///
    /// Refuses a start that is no share, or 0, and a duration of zero or over an hour.
    pub fn linear(start: f64, duration: Duration) -> Result<Self, InvalidSetting> {
        Self::curve(start, duration, 1.0)
    }

    /// Grows along a curve: with an exponent above 1 slowly at first, below 1 quickly at first.
    ///
    /// # Errors
    ///
    /// As [`Ramp::linear`], and an exponent outside of 0.1 to 10.
    pub fn curve(start: f64, duration: Duration, exponent: f64) -> Result<Self, InvalidSetting> {
        if !(start > 0.0 && start <= 1.0) {
            return Err(InvalidSetting::new(
                "breaker.ramp.start",
                start,
                "must be above 0 and at most 1: it is the share of calls admitted at first",
            ));
        }
        if duration.is_zero() || duration > LONGEST {
            return Err(InvalidSetting::new(
                "breaker.ramp.duration",
                format_args!("{duration:?}"),
                "must be above zero and at most an hour: for no ramp use `Ramp::none`",
            ));
        }
        if !(0.1..=10.0).contains(&exponent) {
            return Err(InvalidSetting::new(
                "breaker.ramp.exponent",
                exponent,
                "must be from 0.1 to 10",
            ));
        }
        Ok(Self {
            start,
            exponent,
            duration,
            floor: FLOOR,
        })
    }

    /// Admits all calls at once.
    #[must_use]
    pub const fn none() -> Self {
        Self {
            start: 1.0,
            exponent: 1.0,
            duration: Duration::ZERO,
            floor: FLOOR,
        }
    }

    /// Sets how many calls a second pass whatever the curve says, 10 by default.
    #[must_use]
    pub const fn floor(mut self, per_second: u32) -> Self {
        self.floor = per_second;
        self
    }

    /// Returns how long it takes to admit all calls.
    #[must_use]
    pub const fn duration(&self) -> Duration {
        self.duration
    }

    /// Returns the share of calls that is admitted so long after closing.
    #[must_use]
    pub fn share(&self, since: Duration) -> f64 {
        if since >= self.duration {
            return 1.0;
        }
        let part = since.as_secs_f64() / self.duration.as_secs_f64();
        (1.0 - self.start).mul_add(part.powf(self.exponent), self.start)
    }

    /// Offers one call so long after closing: what is saved up afterwards, and whether it passes.
    ///
    /// `saved` is one word: the milliseconds at which the floor was last paid, and the part of a call saved up.
    pub(super) fn offer(&self, since: Duration, saved: u64) -> (u64, bool) {
        let (paid_until, saved) = (saved >> 32, saved & u64::from(u32::MAX));
        let now = since.as_millis() as u64;
        let elapsed = now.saturating_sub(paid_until).min(1000);
        let by_time = elapsed * u64::from(self.floor) * ONE / 1000;
        let by_share = (self.share(since) * ONE as f64) as u64;
        let most = u64::from(self.floor).clamp(1, 1000) * ONE;
        let saved = (saved + by_time).min(most) + by_share;
        let passes = saved >= ONE;
        let left = if passes { saved - ONE } else { saved };
        (now.max(paid_until) << 32 | left, passes)
    }

    /// What is saved up at the start: the first call passes.
    pub(super) const fn saved_at_start() -> u64 {
        ONE
    }
}

impl Default for Ramp {
    /// From a fifth of all calls to all of them, evenly, within 5 s.
    fn default() -> Self {
        Self {
            start: 0.2,
            exponent: 1.0,
            duration: Duration::from_secs(5),
            floor: FLOOR,
        }
    }
}
