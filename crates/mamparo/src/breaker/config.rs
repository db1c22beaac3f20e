//! The settings of a breaker.

use std::time::Duration;

use mamparo_core::{InvalidSetting, Kind};

use super::{Ramp, Reading, Window};

/// As many probes as can be asked for at once.
const MAX_PROBES: u32 = 100;

/// As many keys as can be asked for.
const MAX_KEYS: usize = 1 << 20;

/// A wait so short that a breaker would turn round and round.
const SHORTEST_WAIT: Duration = Duration::from_millis(1);

/// No wait, age or threshold is longer.
const LONGEST: Duration = Duration::from_secs(86_400);

/// When a breaker opens, how it finds out whether the dependency is back, and how it lets calls in again.
///
/// ```
/// use mamparo::breaker::{BreakerPolicy, Window};
/// use std::time::Duration;
///
/// let policy = BreakerPolicy::builder()
///     .failure_rate(0.5)
///     .slow_calls(Duration::from_secs(1), 0.8)
///     .window(Window::time(Duration::from_secs(10)))
///     .build()?;
/// # let _ = policy;
/// let error = BreakerPolicy::builder().failure_rate(1.5).build().unwrap_err();
/// assert_eq!(error.setting(), "breaker.failure_rate");
/// # Ok::<(), mamparo_core::InvalidSetting>(())
/// ```
#[derive(Clone, Debug)]
pub struct BreakerPolicy {
    pub(super) rules: Rules,
    pub(super) window: Option<Window>,
    pub(super) recovery: Recovery,
    pub(super) reading: Reading,
    pub(super) shadow: bool,
    pub(super) max_keys: usize,
    pub(super) off: bool,
}

/// What opens a breaker; any one of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub(super) consecutive: Option<u32>,
    pub(super) failures: Option<u64>,
    pub(super) failure_rate: Option<f64>,
    pub(super) slow_rate: Option<f64>,
    pub(super) slow_threshold: Option<Duration>,
    pub(super) minimum: u64,
}

/// What a breaker does once it has opened.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recovery {
    pub(super) wait: Duration,
    pub(super) longest_wait: Duration,
    pub(super) growth: f64,
    pub(super) jitter: f64,
    pub(super) probes: u32,
    pub(super) successes: u32,
    pub(super) probe_age: Duration,
    pub(super) ramp: Ramp,
}

/// Settings of a [`BreakerPolicy`].
#[derive(Clone, Debug)]
pub struct BreakerBuilder {
    policy: BreakerPolicy,
    minimum: Option<u64>,
}

impl BreakerPolicy {
    /// Starts from the defaults.
    #[must_use]
    pub fn builder() -> BreakerBuilder {
        BreakerBuilder {
            policy: Self::default(),
            minimum: None,
        }
    }

    /// Turns the layer off: every call passes, and none is judged.
    #[must_use]
    pub fn off() -> Self {
        Self {
            off: true,
            ..Self::default()
        }
    }

    /// Tells whether the layer is off.
    #[must_use]
    pub const fn is_off(&self) -> bool {
        self.off
    }

    /// Returns how many probes pass at once.
    #[must_use]
    pub const fn probes(&self) -> u32 {
        self.recovery.probes
    }

    /// Returns how a verdict is read.
    #[must_use]
    pub const fn reading(&self) -> Reading {
        self.reading
    }

    /// Returns the window over which counts and rates are taken, if a rule needs one.
    #[must_use]
    pub const fn window(&self) -> Option<Window> {
        self.window
    }
}

impl Default for BreakerPolicy {
    /// Opens at 5 consecutive failures.
    fn default() -> Self {
        Self {
            rules: Rules {
                consecutive: Some(5),
                failures: None,
                failure_rate: None,
                slow_rate: None,
                slow_threshold: None,
                minimum: 20,
            },
            window: None,
            recovery: Recovery {
                wait: Duration::from_secs(5),
                longest_wait: Duration::from_secs(60),
                growth: 2.0,
                jitter: 0.2,
                probes: 3,
                successes: 2,
                probe_age: Duration::from_secs(30),
                ramp: Ramp::default(),
            },
            reading: Reading::default(),
            shadow: false,
            max_keys: 1024,
            off: false,
        }
    }
}

impl BreakerBuilder {
    /// Sets how many failures in a row open it, 5 by default: the rule that also works with little traffic.
    #[must_use]
    pub const fn consecutive_failures(mut self, failures: u32) -> Self {
        self.policy.rules.consecutive = Some(failures);
        self
    }

    /// Leaves failures in a row to the other rules.
    #[must_use]
    pub const fn no_consecutive_failures(mut self) -> Self {
        self.policy.rules.consecutive = None;
        self
    }

    /// Opens it at so many failures within the window, however many calls there are.
    #[must_use]
    pub const fn failures_in_window(mut self, failures: u64) -> Self {
        self.policy.rules.failures = Some(failures);
        self
    }

    /// Opens it when this share of the window's calls failed, above 0 and up to 1.
    #[must_use]
    pub const fn failure_rate(mut self, rate: f64) -> Self {
        self.policy.rules.failure_rate = Some(rate);
        self
    }

    /// Opens it when this share of the window's calls took as long as the threshold or longer, until the answer's head.
    ///
    /// Successes and failures are slow alike, and a slow probe fails.
    #[must_use]
    pub const fn slow_calls(mut self, threshold: Duration, rate: f64) -> Self {
        self.policy.rules.slow_threshold = Some(threshold);
        self.policy.rules.slow_rate = Some(rate);
        self
    }

    /// Sets the window of counts and rates, the last 10 s by default where a rule needs one.
    #[must_use]
    pub const fn window(mut self, window: Window) -> Self {
        self.policy.window = Some(window);
        self
    }

    /// Sets how many calls a window must hold before its rates count; 20 by default, or the whole of a smaller window.
    #[must_use]
    pub const fn minimum_calls(mut self, calls: u64) -> Self {
        self.minimum = Some(calls);
        self
    }

    /// Sets how long it stays open: 5 s at first and up to 60 s by default.
    ///
    /// The server's own wait lengthens it, up to the longest.
    #[must_use]
    pub const fn open_wait(mut self, first: Duration, longest: Duration) -> Self {
        self.policy.recovery.wait = first;
        self.policy.recovery.longest_wait = longest;
        self
    }

    /// Sets the factor by which the wait grows with each opening that follows another, 2 by default.
    #[must_use]
    pub const fn open_wait_growth(mut self, factor: f64) -> Self {
        self.policy.recovery.growth = factor;
        self
    }

    /// Sets the share by which a wait is lengthened or shortened at random, 0.2 by default: many processes open at once.
    #[must_use]
    pub const fn open_wait_jitter(mut self, share: f64) -> Self {
        self.policy.recovery.jitter = share;
        self
    }

    /// Sets how many probes pass at once when the wait is over, 3 by default.
    #[must_use]
    pub const fn probes(mut self, at_once: u32) -> Self {
        self.policy.recovery.probes = at_once;
        self
    }

    /// Sets how many successful probes close it, 2 by default. One failed or slow probe opens it again.
    #[must_use]
    pub const fn successes_to_close(mut self, successes: u32) -> Self {
        self.policy.recovery.successes = successes;
        self
    }

    /// Sets how long a probe's place is kept for it, 30 s by default: then the next call gets it.
    ///
    /// A probe whose answer began well and still streams by then has succeeded.
    #[must_use]
    pub const fn probe_age(mut self, longest: Duration) -> Self {
        self.policy.recovery.probe_age = longest;
        self
    }

    /// Sets how admission grows after closing.
    #[must_use]
    pub const fn ramp(mut self, ramp: Ramp) -> Self {
        self.policy.recovery.ramp = ramp;
        self
    }

    /// Reads failures of a kind as failures; see [`Reading`] for what wins.
    #[must_use]
    pub fn record(mut self, kind: Kind) -> Self {
        self.policy.reading = self.policy.reading.record(kind);
        self
    }

    /// Leaves failures of a kind out of all counts; see [`Reading`] for what wins.
    #[must_use]
    pub fn ignore(mut self, kind: Kind) -> Self {
        self.policy.reading = self.policy.reading.ignore(kind);
        self
    }

    /// Counts failures of a kind as calls that did not fail; see [`Reading`] for what wins.
    #[must_use]
    pub fn count(mut self, kind: Kind) -> Self {
        self.policy.reading = self.policy.reading.count(kind);
        self
    }

    /// Decides and reports, but never refuses a call, not even when forced open: to try a policy out.
    #[must_use]
    pub const fn shadow(mut self, shadow: bool) -> Self {
        self.policy.shadow = shadow;
        self
    }

    /// Sets how many keys have a breaker of their own, where breakers are keyed, 1024 by default.
    #[must_use]
    pub const fn max_keys(mut self, keys: usize) -> Self {
        self.policy.max_keys = keys;
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// Refuses thresholds, probes, keys and minima of 0, rates outside of 0 to 1, waits under a millisecond, a window
    /// that is too small for a rule, and a breaker that no rule can open.
    pub fn build(self) -> Result<BreakerPolicy, InvalidSetting> {
        let mut policy = self.policy;
        policy.rules.check()?;
        policy.recovery.check()?;
        policy.set_window(self.minimum)?;
        count("breaker.max_keys", policy.max_keys as u64, MAX_KEYS as u64)?;
        Ok(policy)
    }
}

impl BreakerPolicy {
    /// Chooses the window that the rules need, and the minimum that fits it.
    fn set_window(&mut self, minimum: Option<u64>) -> Result<(), InvalidSetting> {
        if self.rules.need_window() {
            self.window = Some(self.window.unwrap_or_default());
        }
        let most = match self.window {
            Some(window) => window.check()?,
            None => u64::MAX,
        };
        let minimum = minimum.unwrap_or_else(|| self.rules.minimum.min(most));
        if minimum == 0 || minimum > most {
            return Err(InvalidSetting::new(
                "breaker.minimum_calls",
                minimum,
                "must be at least 1, and no more than the window holds",
            ));
        }
        if self.rules.failures.is_some_and(|failures| failures > most) {
            return Err(InvalidSetting::new(
                "breaker.failures_in_window",
                self.rules.failures.unwrap_or_default(),
                "must be no more than the window holds: the rule would never open it",
            ));
        }
        self.rules.minimum = minimum;
        Ok(())
    }
}

impl Rules {
    const fn need_window(&self) -> bool {
        self.failures.is_some() || self.failure_rate.is_some() || self.slow_rate.is_some()
    }

    fn check(&self) -> Result<(), InvalidSetting> {
        if self.consecutive.is_none() && !self.need_window() {
            return Err(InvalidSetting::new(
                "breaker.consecutive_failures",
                "none",
                "must be set when no other rule is: nothing could open the breaker",
            ));
        }
        if let Some(consecutive) = self.consecutive {
            count("breaker.consecutive_failures", consecutive.into(), u64::MAX)?;
        }
        if let Some(failures) = self.failures {
            count("breaker.failures_in_window", failures, u64::MAX)?;
        }
        rate("breaker.failure_rate", self.failure_rate)?;
        rate("breaker.slow_rate", self.slow_rate)?;
        match self.slow_threshold {
            Some(threshold) => duration("breaker.slow_threshold", threshold),
            None => Ok(()),
        }
    }
}

impl Recovery {
    fn check(&self) -> Result<(), InvalidSetting> {
        duration("breaker.open_wait", self.wait)?;
        duration("breaker.longest_open_wait", self.longest_wait)?;
        duration("breaker.probe_age", self.probe_age)?;
        if self.longest_wait < self.wait {
            return Err(InvalidSetting::new(
                "breaker.longest_open_wait",
                format_args!("{:?}", self.longest_wait),
                "must be no shorter than the first open wait",
            ));
        }
        if !(1.0..=10.0).contains(&self.growth) {
            return Err(InvalidSetting::new(
                "breaker.open_wait_growth",
                self.growth,
                "must be from 1 (no growth) to 10",
            ));
        }
        if !(0.0..=0.9).contains(&self.jitter) {
            return Err(InvalidSetting::new(
                "breaker.open_wait_jitter",
                self.jitter,
                "must be from 0 (none) to 0.9",
            ));
        }
        let most = u64::from(MAX_PROBES);
        count("breaker.probes", self.probes.into(), most)?;
        count("breaker.successes_to_close", self.successes.into(), most)
    }
}

fn count(setting: &'static str, value: u64, most: u64) -> Result<(), InvalidSetting> {
    if value == 0 || value > most {
        let reason = "must be at least 1, and within its bound";
        return Err(InvalidSetting::new(setting, value, reason));
    }
    Ok(())
}

fn rate(setting: &'static str, rate: Option<f64>) -> Result<(), InvalidSetting> {
    match rate {
        Some(rate) if !(rate > 0.0 && rate <= 1.0) => Err(InvalidSetting::new(
            setting,
            rate,
            "must be above 0 and at most 1",
        )),
        _ => Ok(()),
    }
}

fn duration(setting: &'static str, value: Duration) -> Result<(), InvalidSetting> {
    if value < SHORTEST_WAIT || value > LONGEST {
        return Err(InvalidSetting::new(
            setting,
            format_args!("{value:?}"),
            "must be from a millisecond to a day",
        ));
    }
    Ok(())
}
