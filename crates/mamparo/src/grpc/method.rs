//! What a service config says of one method.

use std::time::Duration;

use mamparo_core::grpc::{Code, Codes};
use mamparo_core::{Backoff, InvalidSetting};

/// As many attempts as gRPC makes at most: a plan that asks for more gets these (gRFC A6, "maxAttempts").
pub const MAX_ATTEMPTS: u32 = 5;

/// What a [`ServiceConfig`](super::ServiceConfig) says of the methods that it names.
#[derive(Clone, Debug, Default)]
pub struct MethodConfig {
    timeout: Option<Duration>,
    resends: Option<Resends>,
}

/// What becomes of a method's requests that fail, or are slow.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Resends {
    /// Each is sent once; what was never processed may still be sent once more.
    Never,
    /// It is sent again.
    Retry(RetryPlan),
    /// It is sent a second time beside the first.
    Hedge(HedgePlan),
}

/// Which layer sends a method's requests again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    Retry,
    Hedge,
}

impl MethodConfig {
    /// Says nothing: what the layers do without a service config holds.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            timeout: None,
            resends: None,
        }
    }

    /// Bounds the whole call, all attempts together. A caller's shorter deadline holds all the same.
    #[must_use]
    pub const fn within(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sends a request that fails again, in place of anything that was said before.
    #[must_use]
    pub fn retried(mut self, plan: RetryPlan) -> Self {
        self.resends = Some(Resends::Retry(plan));
        self
    }

    /// Sends a request that is slow a second time, in place of anything that was said before.
    #[must_use]
    pub fn hedged(mut self, plan: HedgePlan) -> Self {
        self.resends = Some(Resends::Hedge(plan));
        self
    }

    /// Sends each request once, in place of anything that was said before.
    #[must_use]
    pub fn sent_once(mut self) -> Self {
        self.resends = Some(Resends::Never);
        self
    }

    /// Returns how long a whole call may take.
    #[must_use]
    pub const fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    /// Returns what becomes of requests that fail, or are slow; none where the layer's own policy holds.
    #[must_use]
    pub const fn resends(&self) -> Option<&Resends> {
        self.resends.as_ref()
    }

    pub(crate) const fn owner(&self) -> Option<Owner> {
        match self.resends {
            Some(Resends::Retry(_)) => Some(Owner::Retry),
            Some(Resends::Hedge(_)) => Some(Owner::Hedge),
            Some(Resends::Never) | None => None,
        }
    }

    /// The statuses on which that owner sends again, if it has a plan.
    pub(crate) const fn listed_for(&self, owner: Owner) -> Option<Codes> {
        match (&self.resends, owner) {
            (Some(Resends::Retry(plan)), Owner::Retry) => Some(plan.codes()),
            (Some(Resends::Hedge(plan)), Owner::Hedge) => Some(plan.codes()),
            _ => None,
        }
    }
}

/// When and how often a method's request is sent again: a `retryPolicy`.
#[derive(Clone, Debug)]
pub struct RetryPlan {
    attempts: u32,
    backoff: Backoff,
    codes: Codes,
}

impl RetryPlan {
    /// Makes `attempts`, the original included, and sends again on these statuses; more than 5 attempts are 5.
    ///
    /// A plan also sends again what may have been processed, if it lists the status that this has: `UNAVAILABLE` for a connection
    /// that broke and an attempt that took too long, `INTERNAL` and others for a stream that was reset. That is how gRPC
    /// reads it, and whoever writes it says that the method bears it.
    ///
    /// # Errors
    ///
    /// Refuses fewer than 2 attempts, no status, and `OK` among them.
    ///
    /// ```
    /// use mamparo::grpc::RetryPlan;
    /// use mamparo_core::Backoff;
    /// use mamparo_core::grpc::Codes;
    ///
    /// let plan = RetryPlan::new(10, Backoff::default(), Codes::UNAVAILABLE)?;
    /// assert_eq!(plan.attempts(), 5);
    /// let error = RetryPlan::new(1, Backoff::default(), Codes::UNAVAILABLE).unwrap_err();
    /// assert_eq!(error.setting(), "maxAttempts");
    /// # Ok::<(), mamparo_core::InvalidSetting>(())
    /// ```
    pub fn new(attempts: u32, backoff: Backoff, codes: Codes) -> Result<Self, InvalidSetting> {
        if codes.is_empty() {
            return Err(InvalidSetting::new(
                "retryableStatusCodes",
                "[]",
                "must list a status: to send each request once, leave the retryPolicy out",
            ));
        }
        Ok(Self {
            attempts: allowed(attempts)?,
            backoff,
            codes: failures("retryableStatusCodes", codes)?,
        })
    }

    /// Returns how many attempts are made, the original included.
    #[must_use]
    pub const fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Returns the waits between attempts.
    #[must_use]
    pub const fn backoff(&self) -> &Backoff {
        &self.backoff
    }

    /// Returns the longest time that all waits together can take, pushbacks aside.
    #[must_use]
    pub fn worst_case_wait(&self) -> Duration {
        let waits = (1..self.attempts).map(|resend| self.backoff.ceiling(resend));
        waits.fold(Duration::ZERO, Duration::saturating_add)
    }

    /// Returns the statuses on which a request is sent again.
    #[must_use]
    pub const fn codes(&self) -> Codes {
        self.codes
    }
}

/// When and how often a method's request is sent beside the first: a `hedgingPolicy`.
#[derive(Clone, Debug)]
pub struct HedgePlan {
    attempts: u32,
    delay: Duration,
    codes: Codes,
}

impl HedgePlan {
    /// Makes up to `attempts`, the original included, one after each delay; more than 5 are 5, and no delay is all at once.
    ///
    /// An attempt that ends with one of these statuses brings the next one forward; with any other, it ends the call.
    ///
    /// # Errors
    ///
    /// Refuses fewer than 2 attempts, and `OK` among the statuses.
    pub fn new(attempts: u32, delay: Duration, non_fatal: Codes) -> Result<Self, InvalidSetting> {
        Ok(Self {
            attempts: allowed(attempts)?,
            delay,
            codes: failures("nonFatalStatusCodes", non_fatal)?,
        })
    }

    /// Returns how many attempts are made, the original included.
    #[must_use]
    pub const fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Returns the delay before each attempt after the first.
    #[must_use]
    pub const fn delay(&self) -> Duration {
        self.delay
    }

    /// Returns the statuses that do not end the call.
    #[must_use]
    pub const fn codes(&self) -> Codes {
        self.codes
    }
}

fn allowed(attempts: u32) -> Result<u32, InvalidSetting> {
    if attempts < 2 {
        return Err(InvalidSetting::new(
            "maxAttempts",
            attempts,
            "must be at least 2, because the original counts: to send each request once, leave the policy out",
        ));
    }
    Ok(attempts.min(MAX_ATTEMPTS))
}

fn failures(setting: &'static str, codes: Codes) -> Result<Codes, InvalidSetting> {
    if codes.contains(Code::Ok) {
        let reason = "must not list OK: what succeeded is not sent again";
        return Err(InvalidSetting::new(setting, Code::Ok, reason));
    }
    Ok(codes)
}
