//! The settings of a policy, checked.

use std::time::Duration;

use mamparo_core::InvalidSetting;

use super::{Policy, Wait};
use crate::limits::{LONGEST_WAIT, MAX_ATTEMPTS, MAX_POSTPONEMENTS};

/// Settings of a [`Policy`].
#[derive(Clone, Copy, Debug, Default)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct PolicyBuilder {
    policy: Policy,
}

impl PolicyBuilder {
    /// Sets how many attempts are made, the original included; 4 by default, at most [`MAX_ATTEMPTS`].
    pub const fn max_attempts(mut self, attempts: u32) -> Self {
        self.policy.max_attempts = attempts;
        self
    }

    /// Sets how many technical failures and postponements by a breaker are borne; 100 by default.
    pub const fn max_postponements(mut self, postponements: u32) -> Self {
        self.policy.max_postponements = postponements;
        self
    }

    /// Sets for how long technical failures, lost answers and an open breaker are borne; 7 days by default.
    pub const fn give_up_after(mut self, duration: Duration) -> Self {
        self.policy.give_up_after = duration;
        self
    }

    /// Sets the wait after a refusal.
    pub const fn business(mut self, wait: Wait) -> Self {
        self.policy.business = wait;
        self
    }

    /// Sets the wait after a technical failure.
    pub const fn technical(mut self, wait: Wait) -> Self {
        self.policy.technical = wait;
        self
    }

    /// Sets the wait while the dependency's breaker is open and does not say until when.
    pub const fn postponed(mut self, wait: Wait) -> Self {
        self.policy.postponed = wait;
        self
    }

    /// Sets the longest wait that a dependency may ask for; 24 h by default. What it asks beyond is cut to this.
    pub const fn longest_hint(mut self, hint: Duration) -> Self {
        self.policy.longest_hint = hint;
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// [`InvalidSetting`] when no attempts or too many are asked for, or a duration or a count is zero or beyond its bound.
    pub fn build(self) -> Result<Policy, InvalidSetting> {
        let Policy {
            max_attempts,
            max_postponements,
            give_up_after,
            longest_hint,
            ..
        } = self.policy;
        if !(1..=MAX_ATTEMPTS).contains(&max_attempts) {
            let reason = "must be from 1 to 1000: it counts the original";
            return Err(InvalidSetting::new("max_attempts", max_attempts, reason));
        }
        if max_postponements > MAX_POSTPONEMENTS {
            return Err(InvalidSetting::new(
                "max_postponements",
                max_postponements,
                "must be at most 1000000",
            ));
        }
        for (setting, value) in [
            ("give_up_after", give_up_after),
            ("longest_hint", longest_hint),
        ] {
            if value.is_zero() || value > LONGEST_WAIT {
                return Err(InvalidSetting::new(
                    setting,
                    format!("{value:?}"),
                    "must be longer than zero and at most 365 days",
                ));
            }
        }
        Ok(self.policy)
    }
}
