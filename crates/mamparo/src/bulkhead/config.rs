//! Settings of a bulkhead.

use std::time::Duration;

use mamparo_core::InvalidSetting;

use super::adaptive::AdaptiveLimit;
use super::partition::Partitions;
use super::state::MOST_PLACES;

/// How many calls may run at once, and what happens to the others.
///
/// ```
/// use mamparo::bulkhead::BulkheadPolicy;
/// use std::time::Duration;
///
/// let policy = BulkheadPolicy::builder().limit(16).max_waiting(32).build()?;
/// assert_eq!((policy.limit(), policy.max_waiting()), (16, 32));
/// assert_eq!(policy.max_wait(), Some(Duration::from_millis(100)));
/// # Ok::<(), mamparo_core::InvalidSetting>(())
/// ```
#[derive(Clone, Debug)]
pub struct BulkheadPolicy {
    settings: BulkheadBuilder,
    off: bool,
}

/// Settings of a [`BulkheadPolicy`].
#[derive(Clone, Debug)]
pub struct BulkheadBuilder {
    limit: usize,
    max_waiting: usize,
    max_wait: Option<Duration>,
    min_attempt_time: Duration,
    hold: Hold,
    partitions: Option<Partitions>,
    adaptive: Option<AdaptiveLimit>,
    back_pressure: bool,
}

/// How long a call keeps its place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "an answer has a head and an end")]
pub enum Hold {
    /// Until the answer's body has ended or is dropped: a body that streams is work of the dependency's.
    #[default]
    UntilBodyEnds,
    /// Until the answer's head is there.
    UntilHead,
}

impl BulkheadPolicy {
    /// Starts from the defaults: 64 calls at once, 64 waiting, for 100 ms at most.
    #[must_use]
    pub const fn builder() -> BulkheadBuilder {
        BulkheadBuilder {
            limit: 64,
            max_waiting: 64,
            max_wait: Some(Duration::from_millis(100)),
            min_attempt_time: Duration::from_millis(10),
            hold: Hold::UntilBodyEnds,
            partitions: None,
            adaptive: None,
            back_pressure: false,
        }
    }

    /// Turns the layer off: every call passes, and none takes a place.
    #[must_use]
    pub const fn off() -> Self {
        Self {
            settings: Self::builder(),
            off: true,
        }
    }

    /// These settings with the shares of others, and with what those say of an adaptive limit.
    pub(super) fn shared_as(mut self, other: &Self) -> Self {
        self.settings
            .partitions
            .clone_from(&other.settings.partitions);
        self.settings.adaptive.clone_from(&other.settings.adaptive);
        self
    }

    /// Tells whether the layer is off.
    #[must_use]
    pub const fn is_off(&self) -> bool {
        self.off
    }

    /// Returns how many calls may run at once; where an adaptive limit begins.
    #[must_use]
    pub const fn limit(&self) -> usize {
        self.settings.limit
    }

    /// Returns how many calls may wait.
    #[must_use]
    pub const fn max_waiting(&self) -> usize {
        self.settings.max_waiting
    }

    /// Returns how long a call may wait, if anything but the deadline bounds it.
    #[must_use]
    pub const fn max_wait(&self) -> Option<Duration> {
        self.settings.max_wait
    }

    /// Returns how much time must be left before the deadline for a call to be made.
    #[must_use]
    pub const fn min_attempt_time(&self) -> Duration {
        self.settings.min_attempt_time
    }

    /// Returns how long a call keeps its place.
    #[must_use]
    pub const fn hold(&self) -> Hold {
        self.settings.hold
    }

    /// Tells whether the layer waits in `poll_ready`.
    #[must_use]
    pub const fn is_back_pressure(&self) -> bool {
        self.settings.back_pressure
    }

    pub(super) const fn partitions(&self) -> Option<&Partitions> {
        self.settings.partitions.as_ref()
    }

    pub(super) const fn adaptive(&self) -> Option<&AdaptiveLimit> {
        self.settings.adaptive.as_ref()
    }
}

impl Default for BulkheadPolicy {
    fn default() -> Self {
        Self {
            settings: Self::builder(),
            off: false,
        }
    }
}

impl BulkheadBuilder {
    /// Sets how many calls may run at once, 64 by default; more than [`MOST_PLACES`] are that many.
    #[must_use]
    pub const fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Sets how many calls may wait for a place, 64 by default; with 0 a full bulkhead refuses at once.
    #[must_use]
    pub const fn max_waiting(mut self, calls: usize) -> Self {
        self.max_waiting = calls;
        self
    }

    /// Sets how long a call may wait, 100 ms by default: longer queues only move the delay.
    #[must_use]
    pub const fn max_wait(mut self, wait: Duration) -> Self {
        self.max_wait = Some(wait);
        self
    }

    /// Lets a call wait until its deadline; without one, for as long as its caller does.
    #[must_use]
    pub const fn wait_until_deadline(mut self) -> Self {
        self.max_wait = None;
        self
    }

    /// Sets how much time must be left before the deadline when a wait ends, 10 ms by default.
    #[must_use]
    pub const fn min_attempt_time(mut self, time: Duration) -> Self {
        self.min_attempt_time = time;
        self
    }

    /// Sets how long a call keeps its place, [`Hold::UntilBodyEnds`] by default.
    #[must_use]
    pub const fn hold(mut self, hold: Hold) -> Self {
        self.hold = hold;
        self
    }

    /// Gives tenants shares of the limit and of the queue; nobody has one by default.
    ///
    /// A bulkhead with partitions takes its lock on every call.
    #[must_use]
    pub fn partitions(mut self, partitions: Partitions) -> Self {
        self.partitions = Some(partitions);
        self
    }

    /// Lets the limit follow what the dependency bears; it is fixed by default.
    ///
    /// It begins at [`limit`](Self::limit). Each call then reads the clock twice, and takes a lock at its end.
    #[must_use]
    pub fn adaptive(mut self, adaptive: AdaptiveLimit) -> Self {
        self.adaptive = Some(adaptive);
        self
    }

    /// Waits in `poll_ready`, as tower's own `ConcurrencyLimit` does, and never refuses.
    ///
    /// A service that is ready then holds a place until it is called or dropped, its wait is bounded by nothing but its
    /// caller's patience, and counts against no deadline further in. For callers that balance by readiness.
    #[must_use]
    pub const fn back_pressure(mut self) -> Self {
        self.back_pressure = true;
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// Refuses a limit of 0 or one outside of the adaptive limit's bounds, a wait of zero, and partitions under
    /// back-pressure.
    pub fn build(mut self) -> Result<BulkheadPolicy, InvalidSetting> {
        self.limit = checked_limit(self.limit)?;
        self.max_waiting = self.max_waiting.min(MOST_PLACES);
        if self.max_wait == Some(Duration::ZERO) {
            let mend =
                "must be longer than zero: to refuse at once let nobody wait, with max_waiting = 0";
            return Err(InvalidSetting::new("max_wait", "0s", mend));
        }
        if let Some(adaptive) = &self.adaptive
            && !adaptive.bounds().contains(&self.limit)
        {
            let mend = "must lie between the adaptive limit's floor and ceiling: it begins there";
            return Err(InvalidSetting::new("limit", self.limit, mend));
        }
        if self.back_pressure && self.partitions.is_some() {
            let mend =
                "must be off with partitions: a service that gets ready does not know yet for whom";
            return Err(InvalidSetting::new("back_pressure", true, mend));
        }
        Ok(BulkheadPolicy {
            settings: self,
            off: false,
        })
    }
}

/// Refuses a limit of 0, and makes one that can't be counted the largest that can.
pub(super) fn checked_limit(limit: usize) -> Result<usize, InvalidSetting> {
    if limit == 0 {
        let mend = "must be at least 1: nothing would pass";
        return Err(InvalidSetting::new("limit", 0, mend));
    }
    Ok(limit.min(MOST_PLACES))
}
