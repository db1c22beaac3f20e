//! What the layers of every dependency say of themselves at one instant: [`Policies::snapshot`].
//!
//! As JSON, a snapshot is meant for people and programs alike: it has a `version`, which grows when a field changes its
//! meaning or goes; new fields come without. What a layer says is `null` where the layer is off. Durations are whole
//! milliseconds, and their names end in `_ms`; rates and shares are from 0 to 1; instants are of the wall clock, UTC.
//!
//! Counts begin when a dependency is first loaded, and go on through reloads. They tell of the policy's own stack: a layer
//! that was set by hand on a clone of it has state of its own.
//!
//! ```
//! use mamparo::policy::{Format, Policies};
//!
//! let document = "[dependency.catalog]\nbulkhead = { max_concurrent = 20 }\n";
//! let policies = Policies::loader().text("policies.toml", document, Format::Toml).load()?;
//! let snapshot = policies.snapshot();
//! let catalog = &snapshot.dependencies["catalog"];
//! assert_eq!(catalog.bulkhead.as_ref().map(|bulkhead| bulkhead.limit), Some(20));
//! assert!(catalog.rate_limit.is_none());
//!
//! let json = serde_json::to_value(&snapshot)?;
//! assert_eq!(json["version"], 1);
//! assert_eq!(json["dependencies"]["catalog"]["breakers"]["attempts"]["state"], "closed");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use mamparo_core::breaker::{BreakerCause, BreakerState};
use mamparo_core::clock::{self, SystemClock, WallClock};
use mamparo_core::vitals::{Monitored, Places, Vitals};
use serde::{Serialize, Serializer};
use tower_layer::Identity;

use super::live::Live;
use super::{Policies, Policy};
use crate::breaker::BreakerHandle;
use crate::bulkhead::BulkheadHandle;
use crate::load_shed::LoadShedLayer;
use crate::rate_limit::RateLimitHandle;
use crate::stack::{Protocol, Stack};

/// The version of the format.
pub const VERSION: u32 = 1;

/// All dependencies at one instant.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Snapshot {
    /// The version of the format: [`VERSION`].
    pub version: u32,
    /// When it was taken.
    #[serde(serialize_with = "instant")]
    pub at: SystemTime,
    /// The service that the policies belong to, where they name it.
    pub service: Option<String>,
    /// The dependencies, by name.
    pub dependencies: BTreeMap<String, Dependency>,
}

/// One dependency.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Dependency {
    /// `http` or `grpc`.
    pub protocol: &'static str,
    /// Its circuit breakers.
    pub breakers: Breakers,
    /// Its bulkhead.
    pub bulkhead: Option<Bulkhead>,
    /// Its rate limit.
    pub rate_limit: Option<RateLimit>,
    /// Its load shedding.
    pub load_shed: Option<LoadShed>,
    /// What pays for its resends.
    pub budget: Budget,
    /// What was sent to it.
    pub traffic: Traffic,
}

/// The circuit breakers of a dependency, by what they observe.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Breakers {
    /// Each attempt.
    pub attempts: Option<Breaker>,
    /// Each operation, by what comes of it in the end.
    pub operations: Option<Breaker>,
}

/// A circuit breaker.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Breaker {
    /// Its state. An open breaker whose wait is over is half-open only once a call has come.
    #[serde(serialize_with = "state")]
    pub state: BreakerState,
    /// Why it is in that state; none while it never changed.
    #[serde(serialize_with = "cause")]
    pub cause: Option<BreakerCause>,
    /// Since when it has been in that state.
    #[serde(serialize_with = "instant")]
    pub since: SystemTime,
    /// How long it stays open.
    #[serde(rename = "retry_after_ms", serialize_with = "maybe_millis")]
    pub retry_after: Option<Duration>,
    /// The share of the window's calls that failed; none below the minimum.
    pub failure_rate: Option<f64>,
    /// The share of the window's calls that were slow; none below the minimum.
    pub slow_rate: Option<f64>,
    /// The calls in the window; while it is not closed, of the window as it was when it opened. There is a window
    /// where a rule needs it: a count in a row needs none.
    pub calls: u64,
    /// Those of them that failed.
    pub failures: u64,
    /// Those of them that were slow.
    pub slow: u64,
    /// As many calls as are needed before a rate counts.
    pub minimum_calls: u64,
    /// How many calls have failed in a row.
    pub consecutive_failures: u32,
    /// How often it has opened since it was last closed for good.
    pub openings: u32,
    /// How many probes are under way.
    pub probes: usize,
    /// The share of calls that is admitted when closed: below 1 while admission grows.
    pub admitted: f64,
    /// Results that came after the state had changed.
    pub late: u64,
    /// Results that said nothing of the dependency.
    pub ignored: u64,
    /// Calls that were dropped by whoever made them.
    pub cancelled: u64,
}

/// A bulkhead.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Bulkhead {
    /// How many operations hold a place.
    pub in_flight: usize,
    /// How many wait for one.
    pub waiting: usize,
    /// How many may hold one.
    pub limit: usize,
}

/// A rate limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RateLimit {
    /// How many attempts pass in each period.
    pub count: u32,
    /// The period.
    #[serde(rename = "period_ms", serialize_with = "millis")]
    pub period: Duration,
    /// How many may pass at once, after a pause.
    pub burst: u32,
    /// How many may pass at once now.
    pub available: u32,
    /// How many wait for their turn.
    pub waiting: u64,
    /// When one may pass that does not wait yet; none where it may pass now.
    #[serde(rename = "retry_after_ms", serialize_with = "maybe_millis")]
    pub retry_after: Option<Duration>,
}

/// Load shedding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LoadShed {
    /// How many operations are under way, where they are counted.
    pub in_flight: Option<u64>,
    /// Whether calls wait too long, and are shed for it.
    pub overloaded: bool,
}

/// What pays for resends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Budget {
    /// The tokens that there are to spend.
    pub tokens: Option<u64>,
    /// The tokens that were ever paid in.
    pub allowed: Option<u64>,
    /// The tokens that were consumed.
    pub consumed: u64,
}

/// What was sent to a dependency, and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Traffic {
    /// Operations that reached whatever owns the resends: none that a bulkhead or the like had refused before.
    pub operations: u64,
    /// Attempts: the first of each operation that was sent, and the resends.
    pub attempts: u64,
    /// Operations of which nothing was sent, since their only attempt was refused by a layer of ours.
    pub unsent_operations: u64,
    /// Operations that were sent more than once.
    pub resent_operations: u64,
    /// Operations that were sent more than once and succeeded.
    pub recovered_operations: u64,
    /// Attempts for each operation.
    pub amplification: Option<f64>,
    /// The share of operations sent more than once that succeeded.
    pub recovery_rate: Option<f64>,
    /// Operations that ended late; see [`Stack::late_operations`].
    pub late_operations: u64,
}

impl Policies {
    /// Reads what all layers say of themselves now, of the dependencies as they were loaded last.
    ///
    /// No call waits for it; see [`snapshot`](super::snapshot).
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let current = self.current();
        let at = SystemClock.now();
        let read = |(name, policy): (&str, &Policy)| (name.to_owned(), policy.read(at));
        Snapshot {
            version: VERSION,
            at,
            service: current.service().name.clone(),
            dependencies: current.iter().map(read).collect(),
        }
    }
}

impl Policy {
    /// Reads what the layers of this dependency say of themselves now; see [`Policies::snapshot`].
    #[must_use]
    pub fn snapshot(&self) -> Dependency {
        self.read(SystemClock.now())
    }

    fn read(&self, at: SystemTime) -> Dependency {
        match &self.made().live {
            Live::Http(_, stack) => Dependency::of(stack, "http", at),
            Live::Grpc(_, stack) => Dependency::of(stack, "grpc", at),
        }
    }

    /// Returns the handles of its breakers: the one that observes attempts, and the one that observes operations.
    #[cfg(feature = "admin")]
    pub(crate) fn breakers(&self) -> [Option<BreakerHandle>; 2] {
        match &self.made().live {
            Live::Http(_, stack) => [stack.breaker_handle(), stack.operation_breaker_handle()],
            Live::Grpc(_, stack) => [stack.breaker_handle(), stack.operation_breaker_handle()],
        }
    }
}

impl Monitored for Policies {
    fn each(&self, tell: &mut dyn FnMut(&Vitals)) {
        for (_, policy) in self.current().iter() {
            tell(&match &policy.made().live {
                Live::Http(_, stack) => vitals(stack),
                Live::Grpc(_, stack) => vitals(stack),
            });
        }
    }
}

fn vitals<P: Protocol>(stack: &Stack<Identity, Identity, Identity, P>) -> Vitals {
    let mut vitals = Vitals::of(stack.dependency());
    let breakers = [stack.breaker_handle(), stack.operation_breaker_handle()];
    let states = breakers.iter().flatten().map(BreakerHandle::state);
    vitals.breaker = states.max_by_key(|state| state.level());
    vitals.places = stack.bulkhead_handle().map(|handle| Places {
        in_flight: handle.in_flight(),
        queued: handle.queued(),
        limit: handle.limit(),
    });
    vitals.budget = Some(stack.budget().clone());
    vitals
}

impl Dependency {
    fn of<P: Protocol>(
        stack: &Stack<Identity, Identity, Identity, P>,
        protocol: &'static str,
        at: SystemTime,
    ) -> Self {
        let breaker = |handle: Option<BreakerHandle>| handle.map(|it| Breaker::of(&it, at));
        Self {
            protocol,
            breakers: Breakers {
                attempts: breaker(stack.breaker_handle()),
                operations: breaker(stack.operation_breaker_handle()),
            },
            bulkhead: stack.bulkhead_handle().as_ref().map(Bulkhead::of),
            rate_limit: stack.rate_limit_handle().as_ref().map(RateLimit::of),
            load_shed: stack.load_shed_layer().map(LoadShed::of),
            budget: Budget::of(stack.budget()),
            traffic: Traffic::of(stack.budget(), stack.late_operations()),
        }
    }
}

impl Breaker {
    fn of(handle: &BreakerHandle, at: SystemTime) -> Self {
        let read = handle.snapshot();
        Self {
            state: read.state,
            cause: read.cause,
            since: at.checked_sub(read.lasts).unwrap_or(at),
            retry_after: read.retry_after,
            failure_rate: read.rates.failure_rate(),
            slow_rate: read.rates.slow_rate(),
            calls: read.rates.calls,
            failures: read.rates.failures,
            slow: read.rates.slow,
            minimum_calls: read.rates.minimum,
            consecutive_failures: read.consecutive_failures,
            openings: read.openings,
            probes: read.probes,
            admitted: read.admitted,
            late: read.late,
            ignored: read.ignored,
            cancelled: read.cancelled,
        }
    }
}

impl Bulkhead {
    fn of(handle: &BulkheadHandle) -> Self {
        Self {
            in_flight: handle.in_flight(),
            waiting: handle.queued(),
            limit: handle.limit(),
        }
    }
}

impl RateLimit {
    fn of(handle: &RateLimitHandle) -> Self {
        let (count, period) = handle.policy().rate();
        Self {
            count,
            period,
            burst: handle.policy().burst(),
            available: handle.available(),
            waiting: handle.waiting(),
            retry_after: handle.retry_after(),
        }
    }
}

impl LoadShed {
    fn of<P: Clone>(layer: &LoadShedLayer<P>) -> Self {
        Self {
            in_flight: layer.in_flight(),
            overloaded: layer.is_overloaded(),
        }
    }
}

impl Budget {
    fn of(budget: &mamparo_core::Budget) -> Self {
        let now = clock::now();
        let tokens = budget.tokens(now);
        Self {
            tokens,
            allowed: tokens.map(|_| budget.allowed(now)),
            consumed: budget.consumed(),
        }
    }
}

impl Traffic {
    fn of(budget: &mamparo_core::Budget, late_operations: u64) -> Self {
        let traffic = budget.traffic();
        Self {
            operations: traffic.operations,
            attempts: traffic.attempts(),
            unsent_operations: traffic.unsent,
            resent_operations: traffic.resent,
            recovered_operations: traffic.recovered,
            amplification: traffic.amplification(),
            recovery_rate: traffic.recovery_rate(),
            late_operations,
        }
    }
}

fn instant<S: Serializer>(at: &SystemTime, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&humantime::format_rfc3339_millis(*at))
}

fn state<S: Serializer>(state: &BreakerState, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(state.as_str())
}

fn cause<S: Serializer>(cause: &Option<BreakerCause>, to: S) -> Result<S::Ok, S::Error> {
    cause.map(BreakerCause::as_str).serialize(to)
}

fn millis<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

fn maybe_millis<S: Serializer>(time: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
    match time {
        Some(time) => millis(time, to),
        None => to.serialize_none(),
    }
}
