//! Settings of an adaptive limit.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use mamparo_core::InvalidSetting;

use super::super::state::MOST_PLACES;
use super::window::LimitAlgorithm;

/// An algorithm that moves a bulkhead's limit, and the bounds in which it may; see the [module](super).
///
/// ```
/// use mamparo::bulkhead::{AdaptiveLimit, BulkheadPolicy, Gradient2};
///
/// let adaptive = AdaptiveLimit::builder(Gradient2::default()).ceiling(500).build()?;
/// let policy = BulkheadPolicy::builder().limit(20).adaptive(adaptive).build()?;
/// # let _ = policy;
/// # Ok::<(), mamparo_core::InvalidSetting>(())
/// ```
#[derive(Clone, Debug)]
pub struct AdaptiveLimit {
    settings: AdaptiveBuilder,
}

/// Settings of an [`AdaptiveLimit`].
#[derive(Clone, Debug)]
pub struct AdaptiveBuilder {
    algorithm: Arc<dyn LimitAlgorithm>,
    floor: usize,
    ceiling: usize,
    headroom: f64,
    window: Duration,
    memory: Duration,
}

impl AdaptiveLimit {
    /// Starts from the defaults: between 4 and 1 000 places.
    pub fn builder(algorithm: impl LimitAlgorithm) -> AdaptiveBuilder {
        AdaptiveBuilder {
            algorithm: Arc::new(algorithm),
            floor: 4,
            ceiling: 1_000,
            headroom: 2.0,
            window: Duration::from_millis(100),
            memory: Duration::from_secs(600),
        }
    }

    /// Returns the smallest and the largest limit.
    #[must_use]
    pub const fn bounds(&self) -> RangeInclusive<usize> {
        self.settings.floor..=self.settings.ceiling
    }

    /// Returns how many times of what is in flight the limit may be.
    #[must_use]
    pub const fn headroom(&self) -> f64 {
        self.settings.headroom
    }

    /// Returns how long calls are gathered, at least, before the limit moves.
    #[must_use]
    pub const fn window(&self) -> Duration {
        self.settings.window
    }

    /// Returns for how long the lowest latency is remembered.
    #[must_use]
    pub const fn memory(&self) -> Duration {
        self.settings.memory
    }

    pub(super) fn algorithm(&self) -> &dyn LimitAlgorithm {
        &*self.settings.algorithm
    }
}

impl AdaptiveBuilder {
    /// Sets the smallest limit, 4 by default: with less, one slow call is most of what is seen.
    #[must_use]
    pub const fn floor(mut self, limit: usize) -> Self {
        self.floor = limit;
        self
    }

    /// Sets the largest limit, 1 000 by default.
    #[must_use]
    pub const fn ceiling(mut self, limit: usize) -> Self {
        self.ceiling = limit;
        self
    }

    /// Sets how many times of what was really in flight the limit may be, 2 by default.
    #[must_use]
    pub const fn headroom(mut self, factor: f64) -> Self {
        self.headroom = factor;
        self
    }

    /// Sets how long calls are gathered, at least, before the limit moves: 100 ms by default.
    #[must_use]
    pub const fn window(mut self, window: Duration) -> Self {
        self.window = window;
        self
    }

    /// Sets for how long the lowest latency is remembered, 10 minutes by default.
    ///
    /// A dependency that gets slower for good is held to a low limit for this long, and by a tenth more at most.
    #[must_use]
    pub const fn memory(mut self, memory: Duration) -> Self {
        self.memory = memory;
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// Refuses a floor of 0, a ceiling below the floor, a headroom of less than 1.1 or more than 100, a window of zero,
    /// and a memory of less than ten windows.
    pub fn build(mut self) -> Result<AdaptiveLimit, InvalidSetting> {
        self.ceiling = self.ceiling.min(MOST_PLACES);
        if self.floor == 0 {
            let mend = "must be at least 1: nothing would pass";
            return Err(InvalidSetting::new("floor", 0, mend));
        }
        if self.ceiling < self.floor {
            let mend = "must be at least the floor";
            return Err(InvalidSetting::new("ceiling", self.ceiling, mend));
        }
        if !(1.1..=100.0).contains(&self.headroom) {
            let mend = "must be between 1.1 and 100: with less, the limit could never grow";
            return Err(InvalidSetting::new("headroom", self.headroom, mend));
        }
        if self.window.is_zero() {
            let mend = "must be longer than zero";
            return Err(InvalidSetting::new("window", "0s", mend));
        }
        if self.memory / 10 < self.window {
            let memory = format_args!("{:?}", self.memory).to_string();
            let mend = "must be ten windows at least";
            return Err(InvalidSetting::new("memory", memory, mend));
        }
        Ok(AdaptiveLimit { settings: self })
    }
}
