//! The settings of a hedge.

use std::time::Duration;

use mamparo_core::{Budget, InvalidSetting, Nested};

/// As many attempts as can be asked for: each of them runs beside the others.
pub(super) const MAX_ATTEMPTS: u32 = 10;

/// As many successes as can be asked for before their percentile is the delay.
const MAX_SAMPLES: u32 = 1_000_000;

/// The shortest and the longest time over which latencies are looked at.
const WINDOWS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(3600));

/// The hedges a second that are let through however little traffic there is.
const EXTRA_PER_SECOND: u32 = 1;

/// The most extra load that a quiet time saves up for a busy one, in hedges.
const EXTRA_BURST: u32 = 20;

/// When and how often a request is sent a second time while the first is under way.
///
/// ```
/// use mamparo::hedge::HedgePolicy;
/// use std::time::Duration;
///
/// let policy = HedgePolicy::builder().fixed(Duration::from_millis(50)).build()?;
/// assert_eq!(policy.max_attempts(), 2);
/// let error = HedgePolicy::builder().percentile(1.5).build().unwrap_err();
/// assert_eq!(error.setting(), "percentile");
/// # Ok::<(), mamparo_core::InvalidSetting>(())
/// ```
#[derive(Clone, Debug)]
pub struct HedgePolicy {
    pub(super) settings: HedgeBuilder,
    /// What bounds the load that hedges add, besides the budget that they share with retries.
    pub(super) extra: Budget,
}

/// Settings of a [`HedgePolicy`].
#[derive(Clone, Debug)]
pub struct HedgeBuilder {
    pub(super) max_attempts: u32,
    pub(super) delay: Duration,
    pub(super) percentile: Option<f64>,
    pub(super) min_samples: u32,
    pub(super) window: Duration,
    pub(super) max_extra_load: Option<f64>,
    pub(super) budget: Budget,
    pub(super) idempotent_only: bool,
    pub(super) max_hint: Duration,
    pub(super) min_attempt_time: Duration,
    pub(super) max_body: usize,
    pub(super) nested: Nested,
}

impl HedgePolicy {
    /// Starts from the defaults; the budget is a new one.
    #[must_use]
    pub fn builder() -> HedgeBuilder {
        HedgeBuilder {
            max_attempts: 2,
            delay: Duration::from_millis(100),
            percentile: Some(0.95),
            min_samples: 100,
            window: Duration::from_secs(30),
            max_extra_load: Some(0.1),
            budget: Budget::default(),
            idempotent_only: true,
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

    /// These settings, paid for by the budgets of others, which go on as these say.
    pub(super) fn paid_as(mut self, other: &Self) -> Self {
        if self.settings.max_extra_load.is_some() && other.settings.max_extra_load.is_some() {
            other.extra.retune(&self.extra);
            self.extra = other.extra.clone();
        }
        other.settings.budget.retune(&self.settings.budget);
        self.paid_by(other.settings.budget.clone())
    }

    /// Returns how many attempts an operation may make, the original included.
    #[must_use]
    pub const fn max_attempts(&self) -> u32 {
        self.settings.max_attempts
    }

    /// Returns the budget that pays for hedges.
    #[must_use]
    pub const fn budget(&self) -> &Budget {
        &self.settings.budget
    }
}

impl HedgeBuilder {
    /// Tells whether both look at the same latencies, and for the same.
    pub(super) fn measures_as(&self, other: &Self) -> bool {
        let shape = |of: &Self| (of.percentile, of.min_samples, of.window);
        shape(self) == shape(other)
    }

    /// Sets how many attempts an operation may make, side by side, 2 by default: the original counts.
    ///
    /// A second one cuts the tail; a third hardly does, and costs as much.
    #[must_use]
    pub const fn max_attempts(mut self, attempts: u32) -> Self {
        self.max_attempts = attempts;
        self
    }

    /// Sets the delay before each hedge while the percentile is not known, 100 ms by default.
    #[must_use]
    pub const fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Hedges after the latency that this share of successes stays below, 0.95 by default, and never before 1 ms.
    ///
    /// It then follows the dependency, and 5 % of the operations are hedged.
    #[must_use]
    pub const fn percentile(mut self, share: f64) -> Self {
        self.percentile = Some(share);
        self
    }

    /// Hedges after a delay that is always the same; zero sends all attempts at once, as gRPC does without a delay.
    #[must_use]
    pub const fn fixed(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self.percentile = None;
        self
    }

    /// Sets how many successes there must be in the window before their percentile is the delay, 100 by default.
    #[must_use]
    pub const fn min_samples(mut self, samples: u32) -> Self {
        self.min_samples = samples;
        self
    }

    /// Sets over which time latencies are looked at, 30 s by default; it slides.
    #[must_use]
    pub const fn window(mut self, window: Duration) -> Self {
        self.window = window;
        self
    }

    /// Sets the load that hedges may add, as a share of the operations, 0.1 by default, besides one hedge a second.
    ///
    /// When every answer is slow, a hedge makes it slower: this is where the hedging ends. At most 20 hedges are saved up.
    #[must_use]
    pub const fn max_extra_load(mut self, share: f64) -> Self {
        self.max_extra_load = Some(share);
        self
    }

    /// Leaves it to the budget alone to bound the load that hedges add.
    #[must_use]
    pub const fn without_extra_load_cap(mut self) -> Self {
        self.max_extra_load = None;
        self
    }

    /// Sets the budget that pays for hedges: one per dependency, shared by all that resend to it.
    #[must_use]
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = budget;
        self
    }

    /// Sets whether only idempotent requests are hedged, true by default.
    ///
    /// A request that is hedged takes effect twice unless it is idempotent by its method or by its key. Any other is still
    /// sent again, but never beside an attempt under way, when a failure proves that it was never processed.
    #[must_use]
    pub const fn idempotent_only(mut self, only: bool) -> Self {
        self.idempotent_only = only;
        self
    }

    /// Sets the longest wait that a server may ask for, 30 s by default: beyond it no further attempt is made.
    #[must_use]
    pub const fn max_hint(mut self, longest: Duration) -> Self {
        self.max_hint = longest;
        self
    }

    /// Sets the least time that another attempt needs, 10 ms by default: no hedge unless this fits before the deadline.
    #[must_use]
    pub const fn min_attempt_time(mut self, least: Duration) -> Self {
        self.min_attempt_time = least;
        self
    }

    /// Sets how many bytes of a body are kept for a hedge, 64 KiB by default: a request with a larger one is not hedged.
    #[must_use]
    pub const fn max_body(mut self, bytes: usize) -> Self {
        self.max_body = bytes;
        self
    }

    /// Sets what this hedge does inside of another owner of resends, and around one.
    #[must_use]
    pub const fn nested(mut self, nested: Nested) -> Self {
        self.nested = nested;
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// Refuses 0 attempts or more than 10; a percentile or a share of extra load that is not between 0 and 1; 0 samples or
    /// more than a million; a window shorter than a second or longer than an hour; a `min_attempt_time` of zero.
    pub fn build(self) -> Result<HedgePolicy, InvalidSetting> {
        let checks = [
            (
                self.max_attempts == 0 || self.max_attempts > MAX_ATTEMPTS,
                ("max_attempts", self.max_attempts.to_string()),
                "must be from 1 to 10: the original counts, so 1 means no hedge",
            ),
            (
                wrong_share(self.percentile, |share| share < 1.0),
                ("percentile", number(self.percentile)),
                "must be a share between 0 and 1, such as 0.95",
            ),
            (
                wrong_share(self.max_extra_load, |share| share <= 1.0),
                ("max_extra_load", number(self.max_extra_load)),
                "must be a share above 0 and up to 1: to send no hedges, set max_attempts to 1",
            ),
            (
                self.min_samples == 0 || self.min_samples > MAX_SAMPLES,
                ("min_samples", self.min_samples.to_string()),
                "must be from 1 to 1000000",
            ),
            (
                self.window < WINDOWS.0 || self.window > WINDOWS.1,
                ("window", format!("{:?}", self.window)),
                "must be from 1 s to 1 h",
            ),
            (
                self.min_attempt_time.is_zero(),
                ("min_attempt_time", "0s".to_owned()),
                "must be longer than zero: no attempt can be made in no time",
            ),
        ];
        for (wrong, (setting, value), reason) in checks {
            if wrong {
                return Err(InvalidSetting::new(setting, value, reason));
            }
        }
        let extra = match self.max_extra_load {
            Some(share) => Budget::builder()
                .ratio(share)
                .min_per_second(EXTRA_PER_SECOND)
                .burst(EXTRA_BURST)
                .build()?,
            None => Budget::unlimited(),
        };
        Ok(HedgePolicy {
            settings: self,
            extra,
        })
    }
}

/// Not a number is wrong too.
fn wrong_share(share: Option<f64>, fits: impl Fn(f64) -> bool) -> bool {
    share.is_some_and(|share| !(share > 0.0 && fits(share)))
}

fn number(share: Option<f64>) -> String {
    share.unwrap_or_default().to_string()
}
