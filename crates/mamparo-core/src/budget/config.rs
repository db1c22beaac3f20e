use super::Budget;
use super::state::{Rates, TOKEN};
use crate::InvalidSetting;

/// The largest accepted `min_per_second`: a reserve beyond it would be no limit.
pub const MAX_PER_SECOND: u32 = 1_000_000;

/// Collects the settings of a [`Budget`]; what is not set keeps its default.
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct BudgetBuilder {
    traffic: Share,
    burst: u32,
    max_concurrent: Option<u32>,
    concurrent: Option<Share>,
    per_operation: Option<u32>,
    per_tenant: Option<Share>,
}

/// A share of something, and what is allowed however small that is.
#[derive(Clone, Copy, Debug)]
struct Share {
    ratio: f64,
    min: u32,
}

impl Default for BudgetBuilder {
    fn default() -> Self {
        Self {
            traffic: Share {
                ratio: 0.20,
                min: 10,
            },
            burst: 100,
            max_concurrent: None,
            concurrent: None,
            per_operation: None,
            per_tenant: None,
        }
    }
}

impl BudgetBuilder {
    /// Sets the resends that one operation pays for, 0 to 1, exact to a billionth; 0.20 by default.
    ///
    /// 20 % keeps a dependency that fails every call at 1.2 times its load, while a rare failure is always paid for.
    pub fn ratio(mut self, ratio: f64) -> Self {
        self.traffic.ratio = ratio;
        self
    }

    /// Sets the resends a second that are paid for without any traffic; 10 by default, at most [`MAX_PER_SECOND`].
    ///
    /// Without it, a service of one operation a second could resend none of the first four that fail. One second's
    /// worth is there at the start, and no more than that is ever saved.
    pub fn min_per_second(mut self, min_per_second: u32) -> Self {
        self.traffic.min = min_per_second;
        self
    }

    /// Sets the most tokens that operations can save up, for each tenant too; 100 by default.
    ///
    /// A healthy hour must not pay for a storm.
    pub fn burst(mut self, burst: u32) -> Self {
        self.burst = burst;
        self
    }

    /// Sets the most resends in flight at once, their backoff included; no such cap by default.
    pub fn max_concurrent(mut self, max_concurrent: u32) -> Self {
        self.max_concurrent = Some(max_concurrent);
        self
    }

    /// Caps the resends in flight at max(`min_concurrent`, `ratio` × operations in flight); no such cap by default.
    ///
    /// It is checked when a resend is asked for: one that was let through stays, though operations end around it.
    /// Costs each operation a clone of an `Arc`, which the other caps don't.
    pub fn concurrent_ratio(mut self, ratio: f64, min_concurrent: u32) -> Self {
        self.concurrent = Some(Share {
            ratio,
            min: min_concurrent,
        });
        self
    }

    /// Sets the most resends of one operation, retries and hedges together; no such cap by default.
    pub fn per_operation(mut self, resends: u32) -> Self {
        self.per_operation = Some(resends);
        self
    }

    /// Gives each tenant a budget of its own operations, besides the dependency's; none by default.
    ///
    /// A resend then needs a token of both. There are [`TENANT_SLOTS`](super::TENANT_SLOTS) such budgets, about
    /// 300 KiB, and tenants whose hashes collide share one. An operation without a tenant is bounded by the
    /// dependency's budget only.
    ///
    /// ```
    /// use mamparo_core::budget::Cap;
    /// use mamparo_core::{Budget, Tenant, clock};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let budget = Budget::builder().per_tenant(0.1, 1).build()?;
    /// let (now, noisy) = (clock::now(), Some(Tenant::of("noisy")));
    /// drop(budget.withdraw(now, noisy, 0)?.spend());
    /// let refused = budget.withdraw(now, noisy, 0).unwrap_err();
    /// assert_eq!(refused.cap(), Cap::Tenant);
    /// assert!(budget.withdraw(now, Some(Tenant::of("quiet")), 0).is_ok());
    /// # Ok(())
    /// # }
    /// ```
    pub fn per_tenant(mut self, ratio: f64, min_per_second: u32) -> Self {
        self.per_tenant = Some(Share {
            ratio,
            min: min_per_second,
        });
        self
    }

    /// Checks the settings and makes the budget, with its reserve full and nothing saved.
    ///
    /// # Errors
    ///
    /// [`InvalidSetting`] when a ratio is not a number from 0 to 1, a `min_per_second` is above
    /// [`MAX_PER_SECOND`], or `burst`, `max_concurrent`, `min_concurrent` or `per_operation` is 0.
    ///
    /// ```
    /// use mamparo_core::Budget;
    /// let error = Budget::builder().ratio(1.5).build().unwrap_err();
    /// assert_eq!(error.setting(), "budget.ratio");
    /// ```
    pub fn build(self) -> Result<Budget, InvalidSetting> {
        check_ratio("budget.ratio", Some(self.traffic))?;
        check_ratio("budget.concurrent_ratio", self.concurrent)?;
        check_ratio("budget.per_tenant.ratio", self.per_tenant)?;
        check_per_second("budget.min_per_second", Some(self.traffic))?;
        check_per_second("budget.per_tenant.min_per_second", self.per_tenant)?;
        check_not_zero("budget.burst", Some(self.burst))?;
        check_not_zero("budget.max_concurrent", self.max_concurrent)?;
        check_not_zero(
            "budget.min_concurrent",
            self.concurrent.map(|share| share.min),
        )?;
        check_not_zero("budget.per_operation", self.per_operation)?;
        Ok(Budget::new(self.settings()))
    }

    /// The settings in the integers that the state counts with.
    pub(super) fn settings(&self) -> Settings {
        let rates = |share: Share| Rates::new(parts(share.ratio), share.min, self.burst);
        Settings {
            traffic: Some(rates(self.traffic)),
            max_concurrent: self.max_concurrent,
            concurrent: self.concurrent.map(|share| InFlightShare {
                parts: parts(share.ratio),
                min: share.min,
            }),
            per_operation: self.per_operation,
            per_tenant: self.per_tenant.map(rates),
        }
    }
}

/// What the builder was told, checked; `None` is a cap that isn't there.
#[derive(Clone, Debug, Default)]
pub(super) struct Settings {
    pub(super) traffic: Option<Rates>,
    pub(super) max_concurrent: Option<u32>,
    pub(super) concurrent: Option<InFlightShare>,
    pub(super) per_operation: Option<u32>,
    pub(super) per_tenant: Option<Rates>,
}

/// The share of the operations in flight that may be resends, in billionths, and the least that are allowed.
#[derive(Clone, Debug)]
pub(super) struct InFlightShare {
    pub(super) parts: u64,
    pub(super) min: u32,
}

fn parts(ratio: f64) -> u64 {
    (ratio * TOKEN as f64).round() as u64
}

fn check_ratio(setting: &'static str, share: Option<Share>) -> Result<(), InvalidSetting> {
    match share {
        Some(Share { ratio, .. }) if !(0.0..=1.0).contains(&ratio) => Err(InvalidSetting::new(
            setting,
            ratio,
            "must be a share from 0 to 1",
        )),
        _ => Ok(()),
    }
}

fn check_per_second(setting: &'static str, share: Option<Share>) -> Result<(), InvalidSetting> {
    match share {
        Some(Share { min, .. }) if min > MAX_PER_SECOND => Err(InvalidSetting::new(
            setting,
            min,
            "must be at most 1000000: more would be no limit",
        )),
        _ => Ok(()),
    }
}

fn check_not_zero(setting: &'static str, value: Option<u32>) -> Result<(), InvalidSetting> {
    match value {
        Some(0) => Err(InvalidSetting::new(
            setting,
            0,
            "must be at least 1: to send nothing again, set max_attempts to 1",
        )),
        _ => Ok(()),
    }
}
