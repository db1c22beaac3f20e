//! What happened, told to whoever logs and counts.

use std::error::Error;
use std::fmt;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderName, StatusCode};

use crate::breaker::Transition;
use crate::{CallContext, KeyStep, Kind, OperationId, Rejection, Verdict};

/// Hears what layers report. A layer neither logs nor counts; telemetry does, from these.
///
/// Called on the path of the call: an observer must not block.
///
/// ```
/// use mamparo_core::{Event, Observer};
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// #[derive(Debug, Default)]
/// struct Count(AtomicU64);
///
/// impl Observer for Count {
///     fn on(&self, _: &Event<'_>) {
///         self.0.fetch_add(1, Ordering::Relaxed);
///     }
/// }
/// ```
pub trait Observer: fmt::Debug + Send + Sync + 'static {
    /// Hears one event.
    fn on(&self, event: &Event<'_>);
}

/// One thing that happened, and the call in which it did.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Event<'a> {
    /// The call's context.
    pub context: &'a CallContext,
    /// What happened.
    pub what: What<'a>,
}

impl<'a> Event<'a> {
    /// Tells an observer, if there is one.
    #[inline]
    pub fn report(observer: Option<&Arc<dyn Observer>>, context: &'a CallContext, what: What<'a>) {
        if let Some(observer) = observer {
            observer.on(&Self { context, what });
        }
    }
}

/// Several observers, that hear every event in this order.
///
/// ```
/// use mamparo_core::event::Observers;
/// use mamparo_core::{Event, Observer};
///
/// #[derive(Debug)]
/// struct Deaf;
/// impl Observer for Deaf {
///     fn on(&self, _: &Event<'_>) {}
/// }
/// let both = Observers::default().and(Deaf).and(Deaf);
/// # let _: &dyn Observer = &both;
/// ```
#[derive(Debug, Default)]
pub struct Observers(Vec<Box<dyn Observer>>);

impl Observers {
    /// Adds one that hears after those that are here.
    #[must_use]
    pub fn and(mut self, observer: impl Observer) -> Self {
        self.0.push(Box::new(observer));
        self
    }
}

impl Observer for Observers {
    fn on(&self, event: &Event<'_>) {
        for observer in &self.0 {
            observer.on(event);
        }
    }
}

/// What happened.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum What<'a> {
    /// An attempt's head or error is there.
    AttemptEnded {
        /// What it means, as far as the head tells.
        verdict: Verdict,
    },
    /// The operation will send again, after a wait.
    ResendScheduled {
        /// The number of the attempt to come: 2 for the first resend.
        next: u32,
        /// How the attempt before failed.
        reason: Kind,
        /// How long it waits.
        wait: Duration,
        /// Whether the dependency asked for that wait.
        hinted: bool,
        /// What remains until the deadline, if there is one.
        remaining: Option<Duration>,
    },
    /// The attempt is sent once more at once, because it was never processed: it counts as no other one, and costs no token.
    SentTransparently {
        /// How it failed.
        reason: Kind,
    },
    /// A failed attempt is the operation's last.
    NotResent {
        /// How it failed.
        verdict: Verdict,
        /// Why it is not sent again.
        reason: NotResent,
    },
    /// An attempt was sent beside those that are under way, or after one that failed.
    HedgeSent {
        /// Its number: 2 for the first hedge.
        attempt: u32,
        /// As many others are under way.
        beside: u32,
        /// How an attempt failed for which this one stands in; none when the delay had passed.
        reason: Option<Kind>,
        /// The delay in force.
        delay: Duration,
    },
    /// An attempt that was sent beside others, or in place of a failed one, gave the operation its answer.
    HedgeWon {
        /// Its number: 2 for the first hedge.
        attempt: u32,
    },
    /// The operation is not hedged, or not any more.
    HedgeOff {
        /// Why.
        reason: NotResent,
    },
    /// An operation failed, and its fallback was asked for an answer.
    FellBack {
        /// How the operation failed.
        verdict: Verdict,
        /// What came of the fallback.
        ended: FallbackEnd,
    },
    /// The owner of an operation's resends, a retry or a hedge, is done with it.
    OperationEnded {
        /// The last attempt's verdict, as far as its head tells.
        verdict: Verdict,
        /// How many attempts were made.
        attempts: u32,
        /// Since the operation began.
        elapsed: Duration,
    },
    /// This retry, or hedge, is nested in another: the policy for that was applied.
    Nested {
        /// The outer operation, of this process.
        outer: Option<OperationId>,
        /// The attempt number that the caller of this server sent, where it sent one.
        upstream_attempt: u32,
    },
    /// A layer refused or cut the call.
    Rejected(&'a Rejection),
    /// A layer in shadow mode let the call pass that it would have refused.
    Shadowed(&'a Rejection),
    /// A circuit breaker changed its state, or is gone.
    BreakerTransition(&'a Transition),
    /// Somebody asked for a breaker to be forced, from outside of the program; its change of state, if it has one, follows.
    BreakerOperated {
        /// What was asked for: lower case, stable.
        action: &'static str,
        /// Why it was not done, if it was not: lower case, stable.
        refused: Option<&'static str>,
    },
    /// The operation got an idempotency key.
    KeyAdded {
        /// A short hash of the key.
        hash: NonZeroU64,
    },
    /// Something happened to an idempotency key on a server.
    Key {
        /// A short hash of the key, where there is one.
        hash: Option<NonZeroU64>,
        /// What happened.
        step: KeyStep,
        /// How the store failed, where it did.
        error: Option<&'a (dyn Error + 'static)>,
    },
    /// A deadline header was malformed.
    MalformedDeadline {
        /// Its name.
        header: &'a HeaderName,
    },
    /// The caller's deadline was longer than the server accepts, and was clamped.
    DeadlineClamped {
        /// What the caller asked for.
        asked: Duration,
        /// What it got.
        granted: Duration,
    },
    /// A caller's absolute deadline had passed on arrival, and was not believed: too many had.
    SkewSuspected,
    /// A server answered an error with a response, which tells nothing of the error's text.
    ErrorAnswered {
        /// The error, that nobody sees further out.
        error: &'a (dyn Error + 'static),
        /// The response's status; what HTTP would have got, where gRPC gets 200.
        status: StatusCode,
    },
    /// A call was shed, and its rejection follows.
    Shed {
        /// The rule that it was shed by.
        by: ShedBy,
        /// Its priority, where priorities are told apart.
        priority: Option<&'static str>,
    },
    /// A call waited for its turn under a rate limit.
    RateLimitWaited {
        /// For how long.
        waited: Duration,
    },
    /// The dependency said that its own limit is used up, and nothing is sent for a while.
    RateLimitHeard {
        /// For how long, at least.
        wait: Duration,
    },
    /// A rate limit that replicas share can't be asked: each goes by its own part of it from now on.
    RateLimitStoreAway {
        /// Why.
        error: &'a (dyn Error + 'static),
    },
    /// A rate limit that replicas share can be asked again.
    RateLimitStoreBack {
        /// For how long it was away.
        after: Duration,
    },
    /// A call has waited for its place in a bulkhead, and has it.
    QueueWaited {
        /// For how long.
        waited: Duration,
        /// How many calls may have a place.
        limit: usize,
    },
    /// A bulkhead's adaptive limit has moved.
    LimitChanged {
        /// How many calls could have a place before.
        from: usize,
        /// How many can now.
        to: usize,
    },
    /// Work went on after the deadline had passed.
    LateWork {
        /// For how long.
        late: Duration,
    },
    /// What a server needs is not there yet.
    CheckFailed {
        /// What was looked for.
        name: &'static str,
        /// Why it is not there.
        error: &'a (dyn Error + 'static),
        /// After how long it is looked for again.
        wait: Duration,
    },
    /// Policies were loaded again: in force now, or refused as a whole.
    PoliciesReloaded {
        /// All that is wrong with them, if they were refused; then the old ones stay.
        refused: Option<&'a (dyn Error + 'static)>,
    },
    /// A fault was injected on purpose: what follows is not the dependency's own doing.
    FaultInjected {
        /// Which one: lower case, stable.
        fault: &'static str,
    },
}

/// The rule by which a call was shed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ShedBy {
    /// It waited too long, while the queue did not drain.
    QueueTime,
    /// Too many calls were under way.
    InFlight,
    /// The dependency accepted too few of the calls before it.
    Throttle,
    /// The inner service was not ready.
    NotReady,
}

impl ShedBy {
    /// Returns the name used in metrics and logs: lower case, stable.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::QueueTime => "queue_time",
            Self::InFlight => "in_flight",
            Self::Throttle => "throttle",
            Self::NotReady => "not_ready",
        }
    }
}

/// What came of a fallback.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FallbackEnd {
    /// The caller got its answer.
    Served,
    /// It failed too.
    Failed,
    /// As many fallbacks as are allowed were under way: it was not asked.
    Full,
    /// The operation's deadline had passed: it was not asked.
    TooLate,
    /// Too little of the request was kept to ask it.
    NoRequest,
}

impl FallbackEnd {
    /// Returns the name used in metrics and logs: lower case, stable.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Served => "served",
            Self::Failed => "failed",
            Self::Full => "full",
            Self::TooLate => "too_late",
            Self::NoRequest => "no_request",
        }
    }
}

/// Why a failed attempt is an operation's last, or an operation is not hedged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NotResent {
    /// What failed is never sent again.
    NotRetryable,
    /// The outcome is unknown, and sending it twice could take effect twice.
    NotIdempotent,
    /// All attempts are spent.
    AttemptsExhausted,
    /// A failure that allows one resend failed again.
    OnceOnly,
    /// The budget has no token for it.
    BudgetExhausted,
    /// As much load as hedges may add was added.
    ExtraLoad,
    /// Too many requests have failed of late (gRFC A6, `retryThrottling`).
    Throttled,
    /// The wait and another attempt don't fit before the deadline.
    DeadlineTooClose,
    /// The dependency asked for a longer wait than is accepted.
    HintTooLong,
    /// The request's body is larger than what is kept for a resend.
    BodyTooLarge,
    /// The attempt before still reads the request's body, or the body failed.
    BodyUnavailable,
    /// The dependency, or a retry nearer to it, says that it must not be.
    Forbidden,
    /// A retry around this one owns the resends.
    OwnedOutside,
    /// A retry inside this one has already resent.
    ResentInside,
}

impl NotResent {
    /// Returns the name used in metrics and logs: lower case, stable.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotRetryable => "not_retryable",
            Self::NotIdempotent => "not_idempotent",
            Self::AttemptsExhausted => "attempts_exhausted",
            Self::OnceOnly => "once_only",
            Self::BudgetExhausted => "budget_exhausted",
            Self::ExtraLoad => "extra_load",
            Self::Throttled => "throttled",
            Self::DeadlineTooClose => "deadline_too_close",
            Self::HintTooLong => "hint_too_long",
            Self::BodyTooLarge => "body_too_large",
            Self::BodyUnavailable => "body_unavailable",
            Self::Forbidden => "forbidden",
            Self::OwnedOutside => "owned_outside",
            Self::ResentInside => "resent_inside",
        }
    }

    /// Says it to whoever reads an error, where that is not plain from the error itself.
    pub(crate) const fn says(self) -> Option<&'static str> {
        match self {
            Self::NotRetryable | Self::NotIdempotent | Self::AttemptsExhausted => None,
            Self::OnceOnly => Some("such a failure is sent again once"),
            Self::BudgetExhausted => Some("the budget for resends is spent"),
            Self::ExtraLoad => Some("hedges may add no more load"),
            Self::Throttled => Some("too many requests have failed of late"),
            Self::DeadlineTooClose => Some("the deadline is too close"),
            Self::HintTooLong => Some("it asks for a longer wait than is accepted"),
            Self::BodyTooLarge => Some("the request's body is too large to be kept"),
            Self::BodyUnavailable => Some("the request's body can't be read again"),
            Self::Forbidden => Some("it says that it must not be"),
            Self::OwnedOutside => Some("a retry around this one owns the resends"),
            Self::ResentInside => Some("a retry inside this one has resent"),
        }
    }
}
