//! The settings of a retry.

use std::time::Duration;

use mamparo_core::{Backoff, Budget, InvalidSetting, Nested};

/// As many attempts as can be asked for.
pub(super) const MAX_ATTEMPTS: u32 = 100;

/// When and how often a failed request is sent again.
///
/// ```
/// use mamparo::retry::RetryPolicy;
///
/// let policy = RetryPolicy::builder().max_attempts(4).build()?;
/// assert_eq!(policy.max_attempts(), 4);
/// let error = RetryPolicy::builder().max_attempts(0).build().unwrap_err();
/// assert_eq!(error.setting(), "max_attempts");
/// # Ok::<(), mamparo_core::InvalidSetting>(())
/// ```
#[derive(Clone, Debug)]
pub struct RetryPolicy {
    pub(super) settings: RetryBuilder,
}

/// Settings of a [`RetryPolicy`].
#[derive(Clone, Debug)]
pub struct RetryBuilder {
    pub(super) max_attempts: u32,
    pub(super) backoff: Backoff,
    pub(super) budget: Budget,
    pub(super) max_hint: Duration,
    pub(super) min_attempt_time: Duration,
    pub(super) max_body: usize,
    pub(super) nested: Nested,
}

impl RetryPolicy {
    /// Starts from the defaults; the budget is a new one.
    #[must_use]
    pub fn builder() -> RetryBuilder {
        RetryBuilder {
            max_attempts: 3,
            backoff: Backoff::default(),
            budget: Budget::default(),
            max_hint: Duration::from_secs(30),
            min_attempt_time: Duration::from_millis(10),
            max_body: 64 << 10,
            nested: Nested::default(),
        }
    }

    /// These settings, paid for by that budget.
    pub(crate) fn paid_by(mut self, budget: Budget) -> Self {
        self.settings.budget = budget;
        self
    }

    /// Returns how many attempts an operation may make, the original included.
    #[must_use]
    pub const fn max_attempts(&self) -> u32 {
        self.settings.max_attempts
    }

    /// Returns the budget that pays for resends.
    #[must_use]
    pub const fn budget(&self) -> &Budget {
        &self.settings.budget
    }

    /// Returns the longest time that all waits together can take, hints of the server aside.
    #[must_use]
    pub fn worst_case_wait(&self) -> Duration {
        (1..self.settings.max_attempts)
            .map(|resend| self.settings.backoff.ceiling(resend))
            .fold(Duration::ZERO, Duration::saturating_add)
    }
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            settings: Self::builder(),
        }
    }
}

impl RetryBuilder {
    /// Sets how many attempts an operation may make, 3 by default: the original counts.
    ///
    /// More than three rarely helps where the dependency is down, and costs it dearly.
    #[must_use]
    pub const fn max_attempts(mut self, attempts: u32) -> Self {
        self.max_attempts = attempts;
        self
    }

    /// Sets the waits between attempts: 100 ms × 2ⁿ up to 2 s with full jitter by default.
    #[must_use]
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// Sets the budget that pays for resends: one per dependency, shared by all that resend to it.
    #[must_use]
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = budget;
        self
    }

    /// Sets the longest wait that a server may ask for, 30 s by default: beyond it the response is returned at once.
    #[must_use]
    pub const fn max_hint(mut self, longest: Duration) -> Self {
        self.max_hint = longest;
        self
    }

    /// Sets the least time that another attempt needs, 10 ms by default: no resend unless its wait plus this fits.
    #[must_use]
    pub const fn min_attempt_time(mut self, least: Duration) -> Self {
        self.min_attempt_time = least;
        self
    }

    /// Sets how many bytes of a body are kept for a resend, 64 KiB by default: a larger one is sent once.
    #[must_use]
    pub const fn max_body(mut self, bytes: usize) -> Self {
        self.max_body = bytes;
        self
    }

    /// Sets what this retry does inside of another one, and around one.
    #[must_use]
    pub const fn nested(mut self, nested: Nested) -> Self {
        self.nested = nested;
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// Refuses 0 attempts, or more than 100, and a `min_attempt_time` of zero.
    pub fn build(self) -> Result<RetryPolicy, InvalidSetting> {
        if self.max_attempts == 0 || self.max_attempts > MAX_ATTEMPTS {
            return Err(InvalidSetting::new(
                "max_attempts",
                self.max_attempts,
                "must be from 1 to 100: the original counts, so 1 means no resend",
            ));
        }
        if self.min_attempt_time.is_zero() {
            return Err(InvalidSetting::new(
                "min_attempt_time",
                "0s",
                "must be longer than zero: no attempt can be made in no time",
            ));
        }
        Ok(RetryPolicy { settings: self })
    }
}
