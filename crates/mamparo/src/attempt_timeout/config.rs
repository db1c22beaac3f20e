//! The limits of one attempt.

use std::time::Duration;

use mamparo_core::InvalidSetting;

/// How long one attempt may take until its head is there, and how long its body may stall.
///
/// ```
/// use mamparo::attempt_timeout::AttemptPolicy;
/// use std::time::Duration;
///
/// assert_eq!(AttemptPolicy::default().timeout(), Some(Duration::from_secs(2)));
/// assert_eq!(AttemptPolicy::default().body_idle(), Some(Duration::from_secs(10)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttemptPolicy {
    settings: AttemptBuilder,
}

/// Settings of an [`AttemptPolicy`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttemptBuilder {
    timeout: Option<Duration>,
    body_idle: Option<Duration>,
}

impl AttemptPolicy {
    /// Starts from the defaults.
    #[must_use]
    pub const fn builder() -> AttemptBuilder {
        AttemptBuilder {
            timeout: Some(Duration::from_secs(2)),
            body_idle: Some(Duration::from_secs(10)),
        }
    }

    /// Returns how long an attempt may take until its head is there.
    #[must_use]
    pub const fn timeout(self) -> Option<Duration> {
        self.settings.timeout
    }

    /// Returns how long a body may stall.
    #[must_use]
    pub const fn body_idle(self) -> Option<Duration> {
        self.settings.body_idle
    }
}

impl Default for AttemptPolicy {
    fn default() -> Self {
        Self {
            settings: Self::builder(),
        }
    }
}

impl AttemptBuilder {
    /// Sets how long an attempt may take until its head is there, 2 s by default.
    #[must_use]
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets no timeout of its own: only the deadline bounds an attempt.
    #[must_use]
    pub const fn no_timeout(mut self) -> Self {
        self.timeout = None;
        self
    }

    /// Sets how long a body may stall, 10 s by default.
    #[must_use]
    pub const fn body_idle(mut self, idle: Duration) -> Self {
        self.body_idle = Some(idle);
        self
    }

    /// Lets a body stall until the deadline.
    #[must_use]
    pub const fn no_body_idle(mut self) -> Self {
        self.body_idle = None;
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// Refuses zero: no attempt could succeed.
    pub fn build(self) -> Result<AttemptPolicy, InvalidSetting> {
        let settings = [
            ("attempt_timeout", self.timeout),
            ("body_idle", self.body_idle),
        ];
        for (setting, value) in settings {
            if value == Some(Duration::ZERO) {
                return Err(InvalidSetting::new(
                    setting,
                    "0s",
                    "must be longer than zero: to set no limit, say so",
                ));
            }
        }
        Ok(AttemptPolicy { settings: self })
    }
}
