//! The settings of a rate limit.

use std::time::Duration;

use mamparo_core::InvalidSetting;
use mamparo_core::http::QuotaPolicy;

use super::state::Gcra;

/// How much a cost of one takes at most: a rate of less than one a year is refused.
const LONGEST_INTERVAL: Duration = Duration::from_secs(366 * 86_400);

/// How many calls may pass, how many at once, and whether the others wait.
///
/// The rate has no default: only the dependency's owner knows it.
///
/// ```
/// use mamparo::rate_limit::RateLimitPolicy;
/// use std::time::Duration;
///
/// let policy = RateLimitPolicy::per(Duration::from_secs(1), 50)
///     .burst(10)
///     .max_wait(Duration::from_millis(200))
///     .build()?;
/// assert_eq!(policy.burst(), 10);
///
/// let error = RateLimitPolicy::per(Duration::from_secs(1), 0).build().unwrap_err();
/// assert_eq!(error.setting(), "rate");
/// # Ok::<(), mamparo_core::InvalidSetting>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimitPolicy {
    pub(super) settings: RateLimitBuilder,
    pub(super) gcra: Gcra,
    pub(super) off: bool,
}

/// Settings of a [`RateLimitPolicy`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimitBuilder {
    count: u32,
    period: Duration,
    burst: Option<u32>,
    pub(super) max_wait: Duration,
    pub(super) max_waiting: u32,
    pub(super) max_keys: usize,
    pub(super) obey: Option<Duration>,
}

impl RateLimitPolicy {
    /// Begins with a rate: a cost of `count` in each `period`.
    #[must_use]
    pub const fn per(period: Duration, count: u32) -> RateLimitBuilder {
        RateLimitBuilder {
            count,
            period,
            burst: None,
            max_wait: Duration::ZERO,
            max_waiting: 1_024,
            max_keys: 10_000,
            obey: None,
        }
    }

    /// Turns the layer off: every call passes, and none is counted.
    #[must_use]
    pub fn off() -> Self {
        let (count, period) = (u32::MAX, Duration::from_secs(1));
        Self {
            settings: Self::per(period, count),
            gcra: Gcra::new(count, period, count),
            off: true,
        }
    }

    /// Tells whether the layer is off.
    #[must_use]
    pub const fn is_off(&self) -> bool {
        self.off
    }

    /// Returns the rate: how much passes in each period.
    #[must_use]
    pub const fn rate(&self) -> (u32, Duration) {
        (self.settings.count, self.settings.period)
    }

    /// Returns how much may pass at once, after a pause.
    #[must_use]
    pub const fn burst(&self) -> u32 {
        self.settings.burst_or_count()
    }

    /// Describes the limit by a name, for a server's callers.
    ///
    /// # Errors
    ///
    /// Refuses what is no name, see [`QuotaPolicy::new`].
    pub fn quota(&self, name: &str) -> Result<QuotaPolicy, InvalidSetting> {
        let (count, period) = self.rate();
        QuotaPolicy::new(name, u64::from(count), period)
    }

    /// Returns how long a call waits at most.
    #[must_use]
    pub const fn max_wait(&self) -> Duration {
        self.settings.max_wait
    }
}

impl RateLimitBuilder {
    /// Sets how much may pass at once after a pause; by default as much as the period's count.
    ///
    /// In any stretch of time passes at most the rate's share of it plus the burst. So with the default, up to twice
    /// the count can pass within one period; a smaller burst spreads calls more evenly. A call that costs more
    /// than the burst is refused for good. Since timers are no finer than a millisecond, calls that wait need a burst
    /// of as much as the rate lets pass in one, or they pass more slowly than the rate.
    #[must_use]
    pub const fn burst(mut self, burst: u32) -> Self {
        self.burst = Some(burst);
        self
    }

    /// Sets how long a call may wait for its turn; by default not at all: it is rejected at once.
    ///
    /// A call whose turn would come later, or so late that its deadline leaves no time to be sent in, is rejected at
    /// once, too.
    #[must_use]
    pub const fn max_wait(mut self, wait: Duration) -> Self {
        self.max_wait = wait;
        self
    }

    /// Sets how much may wait at once (by its cost: as many calls, where each costs one), 1 024 by default.
    #[must_use]
    pub const fn max_waiting(mut self, waiting: u32) -> Self {
        self.max_waiting = waiting;
        self
    }

    /// Sets for how many keys the limit is kept, 10 000 by default; it takes some 300 bytes a key.
    ///
    /// Past that, the key used the longest ago gives way, and the new key takes its debt over. So however many keys
    /// there are, in all no more passes than for this number of keys; and a key whose own debt is forgotten gains
    /// from it only if this number of other keys has been used within the time that one burst takes.
    #[must_use]
    pub const fn max_keys(mut self, keys: usize) -> Self {
        self.max_keys = keys;
        self
    }

    /// Obeys the dependency when it says that its own limit is used up, for `at_most` so long; by default it does not.
    ///
    /// Ten minutes is a good bound: a longer wait is more likely an error than meant (draft-ietf-httpapi-ratelimit-headers-10,
    /// §5). What is said, and by what, is for the layer's protocol: see [`HttpLimits`](super::HttpLimits).
    #[must_use]
    pub const fn obey(mut self, at_most: Duration) -> Self {
        self.obey = Some(at_most);
        self
    }

    const fn burst_or_count(&self) -> u32 {
        match self.burst {
            Some(burst) => burst,
            None => self.count,
        }
    }

    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// Refuses a rate of zero, without end, of more than one a nanosecond or less than one a year; a burst of zero; no
    /// place for a key; no place for a call that is meant to wait; and to obey for no time.
    pub fn build(self) -> Result<RateLimitPolicy, InvalidSetting> {
        let Self { count, period, .. } = self;
        let rate = format!("{count} per {period:?}");
        let burst = self.burst_or_count();
        if count == 0 || period.is_zero() {
            let reason = "must be at least 1, in a period longer than zero";
            return Err(InvalidSetting::new("rate", rate, reason));
        }
        if period.as_nanos() < u128::from(count) || period / count > LONGEST_INTERVAL {
            let reason = "must be from one a year to one a nanosecond";
            return Err(InvalidSetting::new("rate", rate, reason));
        }
        let at_least_1 = [
            ("burst", burst as usize),
            ("max_keys", self.max_keys),
            ("max_waiting", self.max_waiting as usize),
        ];
        for (setting, value) in at_least_1 {
            if value == 0 {
                return Err(InvalidSetting::new(setting, value, "must be at least 1"));
            }
        }
        if self.obey == Some(Duration::ZERO) {
            let reason = "must be longer than zero: not to obey, leave it out";
            return Err(InvalidSetting::new("obey", "0s", reason));
        }
        Ok(RateLimitPolicy {
            settings: self,
            gcra: Gcra::new(count, period, burst),
            off: false,
        })
    }
}
