//! What a circuit breaker says of itself: its state, its rates, how it changed.

use std::fmt::{self, Display};
use std::sync::Arc;
use std::time::Duration;

use crate::Dependency;
use crate::clock::Instant;

/// The states of a circuit breaker.
///
/// ```
/// use mamparo_core::breaker::BreakerState;
///
/// let gauge = [BreakerState::Closed, BreakerState::HalfOpen, BreakerState::Open].map(BreakerState::level);
/// assert_eq!(gauge, [0, 1, 2]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(
    clippy::exhaustive_enums,
    reason = "whoever shows a breaker must say how it shows each state"
)]
pub enum BreakerState {
    /// Calls pass, and their results are counted.
    Closed,
    /// A few probes pass, all other calls are rejected.
    HalfOpen,
    /// Calls are rejected until the wait is over.
    Open,
    /// Calls are rejected until an operator says otherwise.
    ForcedOpen,
    /// Calls pass, and nothing is counted, until an operator says otherwise.
    Disabled,
}

impl BreakerState {
    /// Returns the name used in metrics and logs: lower case, stable.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::HalfOpen => "half_open",
            Self::Open => "open",
            Self::ForcedOpen => "forced_open",
            Self::Disabled => "disabled",
        }
    }

    /// Returns the value of the state's gauge: 0 lets all calls pass, 1 probes, 2 none.
    #[must_use]
    pub const fn level(self) -> u8 {
        match self {
            Self::Closed | Self::Disabled => 0,
            Self::HalfOpen => 1,
            Self::Open | Self::ForcedOpen => 2,
        }
    }
}

impl Display for BreakerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a circuit breaker has decided for one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BreakerDecision {
    /// It passes.
    Admitted,
    /// It passes to find out whether the dependency has recovered.
    Probe,
    /// It passes, though it would have been rejected if the breaker were not in shadow mode.
    Shadowed,
    /// It is rejected.
    Rejected,
}

impl BreakerDecision {
    /// Returns the name used in spans and logs: lower case, stable.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Admitted => "admitted",
            Self::Probe => "probe",
            Self::Shadowed => "shadowed",
            Self::Rejected => "rejected",
        }
    }
}

/// Why a circuit breaker changed its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BreakerCause {
    /// So many calls failed one after the other.
    ConsecutiveFailures,
    /// So many calls failed within the window.
    FailureCount,
    /// Too great a share of the window's calls failed.
    FailureRate,
    /// Too great a share of the window's calls was slow.
    SlowRate,
    /// A probe failed, or was slow.
    ProbeFailed,
    /// Enough probes succeeded.
    ProbesSucceeded,
    /// The wait of the open state was over as a call came.
    WaitElapsed,
    /// An operator said so.
    Operator,
    /// Another key needed the place.
    Evicted,
}

impl BreakerCause {
    /// Returns the name used in metrics and logs: lower case, stable.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ConsecutiveFailures => "consecutive_failures",
            Self::FailureCount => "failure_count",
            Self::FailureRate => "failure_rate",
            Self::SlowRate => "slow_rate",
            Self::ProbeFailed => "probe_failed",
            Self::ProbesSucceeded => "probes_succeeded",
            Self::WaitElapsed => "wait_elapsed",
            Self::Operator => "operator",
            Self::Evicted => "evicted",
        }
    }
}

/// What a breaker's window holds: calls that ended and said something of the dependency.
///
/// ```
/// use mamparo_core::breaker::Rates;
///
/// let few = Rates::new(3, 3, 0, 20);
/// assert!(few.below_minimum() && few.failure_rate().is_none());
/// assert_eq!(Rates::new(20, 5, 0, 20).failure_rate(), Some(0.25));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rates {
    /// The calls that ended.
    pub calls: u64,
    /// Those that failed.
    pub failures: u64,
    /// Those that were slow, whether or not they failed.
    pub slow: u64,
    /// As many calls as are needed before a rate counts.
    pub minimum: u64,
}

impl Rates {
    /// Puts counts together; no part is greater than the whole.
    #[must_use]
    pub fn new(calls: u64, failures: u64, slow: u64, minimum: u64) -> Self {
        Self {
            calls,
            failures: failures.min(calls),
            slow: slow.min(calls),
            minimum,
        }
    }

    /// Tells whether there are too few calls for a rate: until then the rules on rates are inert.
    #[must_use]
    pub const fn below_minimum(&self) -> bool {
        self.calls < self.minimum || self.calls == 0
    }

    /// Returns the share of calls that failed, from 0 to 1; none below the minimum.
    #[must_use]
    pub fn failure_rate(&self) -> Option<f64> {
        self.rate(self.failures)
    }

    /// Returns the share of calls that were slow, from 0 to 1; none below the minimum.
    #[must_use]
    pub fn slow_rate(&self) -> Option<f64> {
        self.rate(self.slow)
    }

    fn rate(&self, part: u64) -> Option<f64> {
        (!self.below_minimum()).then(|| part as f64 / self.calls as f64)
    }
}

/// One change of a breaker's state.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Transition {
    /// The dependency that is called.
    pub dependency: Dependency,
    /// The key of the breaker, where there is one a key.
    pub key: Option<Arc<str>>,
    /// The state before.
    pub from: BreakerState,
    /// The state after; none when the breaker is gone, with all metrics of its key.
    pub to: Option<BreakerState>,
    /// Why.
    pub cause: BreakerCause,
    /// The window as it was: with a breaker that opens, what opened it.
    pub rates: Rates,
    /// How often it has opened since it was last closed for good.
    pub openings: u32,
    /// How long it stays open, where it opened.
    pub wait: Option<Duration>,
    /// When.
    pub at: Instant,
}

impl Transition {
    /// Notes a change; what is not known of it stays at its default.
    #[must_use]
    pub fn new(
        from: BreakerState,
        to: Option<BreakerState>,
        cause: BreakerCause,
        at: Instant,
    ) -> Self {
        Self {
            dependency: Dependency::UNNAMED,
            key: None,
            from,
            to,
            cause,
            rates: Rates::default(),
            openings: 0,
            wait: None,
            at,
        }
    }
}
