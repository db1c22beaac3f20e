//! How long a server may take to stop.

use std::time::Duration;

use mamparo_core::InvalidSetting;

/// How long a server takes to stop, step by step.
///
/// ```
/// use mamparo::serve::StopPolicy;
/// use std::time::Duration;
///
/// let policy = StopPolicy::builder()
///     .delay(Duration::from_secs(5))
///     .grace(Duration::from_secs(20))
///     .build()?;
/// assert_eq!(policy.longest(), Duration::from_secs(30)); // 5 s for telemetry besides
/// # Ok::<(), mamparo_core::InvalidSetting>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StopPolicy {
    settings: StopBuilder,
}

/// Settings of a [`StopPolicy`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StopBuilder {
    delay: Duration,
    grace: Duration,
    flush: Duration,
}

impl StopPolicy {
    /// Starts from the defaults.
    #[must_use]
    pub const fn builder() -> StopBuilder {
        StopBuilder {
            delay: Duration::ZERO,
            grace: Duration::from_secs(30),
            flush: Duration::from_secs(5),
        }
    }

    /// Returns for how long new requests are still taken after the server has said that it is not ready.
    #[must_use]
    pub const fn delay(self) -> Duration {
        self.settings.delay
    }

    /// Returns how long requests in flight may take after that.
    #[must_use]
    pub const fn grace(self) -> Duration {
        self.settings.grace
    }

    /// Returns how long telemetry may take to be flushed.
    #[must_use]
    pub const fn flush(self) -> Duration {
        self.settings.flush
    }

    /// Returns how long all of it may take: whoever kills the process must wait longer.
    #[must_use]
    pub const fn longest(self) -> Duration {
        let StopBuilder {
            delay,
            grace,
            flush,
        } = self.settings;
        delay.saturating_add(grace).saturating_add(flush)
    }
}

impl Default for StopPolicy {
    fn default() -> Self {
        Self {
            settings: Self::builder(),
        }
    }
}

impl StopBuilder {
    /// Sets for how long new requests are still taken after the server has said that it is not ready, by default not at all.
    ///
    /// Behind a load balancer as long as that takes to notice, and a little more: what it sends in between would find nobody.
    #[must_use]
    pub const fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Sets how long requests in flight may take once no more are taken, 30 s by default; then they are cut.
    #[must_use]
    pub const fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Sets how long telemetry may take to be flushed, 5 s by default.
    #[must_use]
    pub const fn flush(mut self, limit: Duration) -> Self {
        self.flush = limit;
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// Refuses a grace of zero, under which every request in flight would be cut.
    pub fn build(self) -> Result<StopPolicy, InvalidSetting> {
        if self.grace.is_zero() {
            let reason = "must be longer than zero: requests in flight would all be cut";
            return Err(InvalidSetting::new("grace", "0s", reason));
        }
        Ok(StopPolicy { settings: self })
    }
}
