//! The settings of load shedding.

use std::time::Duration;

use mamparo_core::InvalidSetting;

use super::priority::Priority;

/// The longest window of a throttle: what it counts then fits its words at a million calls a second.
const LONGEST_WINDOW: Duration = Duration::from_secs(3_600);

/// When the load is too high, and for whom.
///
/// There is no default: at least one rule must be set, and a call is shed as soon as one of them says so.
///
/// ```
/// use mamparo::load_shed::LoadShedPolicy;
/// use std::time::Duration;
///
/// let policy = LoadShedPolicy::builder()
///     .max_in_flight(200)
///     .queue_time(Duration::from_millis(20), Duration::from_millis(100))
///     .build()?;
/// # let _ = policy;
///
/// let error = LoadShedPolicy::builder().build().unwrap_err();
/// assert_eq!(error.setting(), "load_shed");
/// # Ok::<(), mamparo_core::InvalidSetting>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadShedPolicy {
    pub(super) settings: LoadShedBuilder,
    pub(super) off: bool,
}

/// Settings of a [`LoadShedPolicy`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadShedBuilder {
    pub(super) max_in_flight: Option<usize>,
    pub(super) queue_time: Option<QueueTime>,
    pub(super) throttle: Option<Throttle>,
    pub(super) max_rejection: f64,
    pub(super) refuse_when_not_ready: bool,
    pub(super) shares: [f64; Priority::COUNT],
    pub(super) retry_after: Duration,
}

/// How long calls may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct QueueTime {
    pub(super) target: Duration,
    pub(super) interval: Duration,
}

/// How many more calls than are accepted may be sent, and over which time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Throttle {
    pub(super) k: f64,
    pub(super) window: Duration,
}

impl LoadShedPolicy {
    /// Begins without a rule.
    #[must_use]
    pub const fn builder() -> LoadShedBuilder {
        LoadShedBuilder {
            max_in_flight: None,
            queue_time: None,
            throttle: None,
            max_rejection: 0.95,
            refuse_when_not_ready: false,
            shares: [0.5, 0.75, 0.9, 1.0],
            retry_after: Duration::from_secs(1),
        }
    }

    /// Turns the layer off: every call passes, and none is counted.
    #[must_use]
    pub const fn off() -> Self {
        Self {
            settings: Self::builder(),
            off: true,
        }
    }

    /// Tells whether the layer is off.
    #[must_use]
    pub const fn is_off(&self) -> bool {
        self.off
    }

    /// The share of what each rule allows that such a call may use.
    #[inline]
    pub(super) const fn share(&self, priority: Option<Priority>) -> f64 {
        match priority {
            Some(priority) => self.settings.shares[priority as usize],
            None => 1.0,
        }
    }
}

impl LoadShedBuilder {
    /// Sheds what would be more calls at once than that, each counted until its answer's body is over.
    #[must_use]
    pub const fn max_in_flight(mut self, calls: usize) -> Self {
        self.max_in_flight = Some(calls);
        self
    }

    /// Sheds by how long calls have waited, as CoDel does (RFC 8289).
    ///
    /// When in a whole `interval` even the shortest wait was above the `target`, the queue does not drain any more, and
    /// for the next interval each call is shed that has waited twice the target. 5 ms and 100 ms are CoDel's own
    /// values; a target a few times as long as the work itself is a good one.
    ///
    /// A call has waited since it arrived, see [`Assess::arrived`](super::Assess::arrived), until the inner service is
    /// ready for it; where nobody noted when it arrived, since it came here.
    #[must_use]
    pub const fn queue_time(mut self, target: Duration, interval: Duration) -> Self {
        self.queue_time = Some(QueueTime { target, interval });
        self
    }

    /// Sheds calls that the dependency would reject, by how many of the last ones it accepted.
    ///
    /// The adaptive throttling of "Handling Overload" (Site Reliability Engineering, chapter 21): of `requests` in
    /// the `window` (its two minutes: 120 s) of which the dependency accepted `accepts`, a new one is shed with the
    /// probability (requests − k · accepts) / (requests + 1). With its k of 2, the dependency sees about as many calls
    /// that it rejects as calls that it accepts; a lower k, not below 1, sheds more.
    ///
    /// Accepted is what the dependency worked on, well or not; not accepted what was throttled or answered with
    /// "unavailable", what timed out, and what has no answer. The window slides by a tenth of it.
    #[must_use]
    pub const fn throttle(mut self, k: f64, window: Duration) -> Self {
        self.throttle = Some(Throttle { k, window });
        self
    }

    /// Sets the highest probability with which [`throttle`](Self::throttle) sheds, 0.95 by default.
    ///
    /// Below 1 some calls keep asking a dependency that accepts nothing, and find out that it works again before the
    /// window has forgotten that it did not.
    #[must_use]
    pub const fn max_rejection(mut self, probability: f64) -> Self {
        self.max_rejection = probability;
        self
    }

    /// Sheds calls while the inner service is not ready, in place of waiting for it.
    #[must_use]
    pub const fn refuse_when_not_ready(mut self) -> Self {
        self.refuse_when_not_ready = true;
        self
    }

    /// Sets which share of what a rule allows each priority may use, the lowest first; by default 0.5, 0.75, 0.9 and 1.
    ///
    /// That is the share of the calls at once, of twice the target of a wait, and of how far k is above 1. Requests
    /// without a priority may use all of it.
    #[must_use]
    pub const fn shares(mut self, shares: [f64; 4]) -> Self {
        self.shares = shares;
        self
    }

    /// Sets after how long a call that was shed may come back, 1 s by default.
    #[must_use]
    pub const fn retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = wait;
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// Refuses a policy without a rule; no calls at once; a target of zero, or no interval longer than it; k below 1; a window shorter
    /// than 1 s or longer than an hour; a probability or a share that is not above 0 and at most 1; and shares of which a
    /// higher priority has the smaller.
    pub fn build(self) -> Result<LoadShedPolicy, InvalidSetting> {
        let none = self.max_in_flight.is_none()
            && self.queue_time.is_none()
            && self.throttle.is_none()
            && !self.refuse_when_not_ready;
        if none {
            let reason =
                "must have a rule: max_in_flight, queue_time, throttle or refuse_when_not_ready";
            return Err(InvalidSetting::new("load_shed", "no rule", reason));
        }
        if self.max_in_flight == Some(0) {
            let reason = "must be at least 1";
            return Err(InvalidSetting::new("max_in_flight", 0, reason));
        }
        if let Some(QueueTime { target, interval }) = self.queue_time
            && (target.is_zero() || interval <= target)
        {
            let value = format!("{target:?} in {interval:?}");
            let reason = "must be longer than zero, and the interval longer than the target";
            return Err(InvalidSetting::new("queue_time", value, reason));
        }
        if let Some(throttle) = self.throttle {
            throttle.check()?;
        }
        let fraction = |value: f64| value > 0.0 && value <= 1.0;
        if !fraction(self.max_rejection) {
            let reason = "must be above 0 and at most 1";
            return Err(InvalidSetting::new(
                "max_rejection",
                self.max_rejection,
                reason,
            ));
        }
        if !self.shares.into_iter().all(fraction) || !self.shares.is_sorted() {
            let value = format!("{:?}", self.shares);
            let reason = "must each be above 0 and at most 1, and none smaller than the one before";
            return Err(InvalidSetting::new("shares", value, reason));
        }
        Ok(LoadShedPolicy {
            settings: self,
            off: false,
        })
    }
}

impl Throttle {
    fn check(self) -> Result<(), InvalidSetting> {
        if !self.k.is_finite() || self.k < 1.0 {
            let reason = "must be a number of at least 1";
            return Err(InvalidSetting::new("k", self.k, reason));
        }
        if self.window < Duration::from_secs(1) || self.window > LONGEST_WINDOW {
            let value = format!("{:?}", self.window);
            let reason = "must be from 1 s to an hour";
            return Err(InvalidSetting::new("window", value, reason));
        }
        Ok(())
    }
}
