//! What a record says of an event.

use std::error::Error;
use std::fmt::{self, Display};
use std::num::NonZeroU64;
use std::time::Duration;

use mamparo_core::breaker::{BreakerDecision, BreakerState, Transition};
use mamparo_core::grpc::Code;
use mamparo_core::{
    CallContext, Class, Dependency, Kind, OperationId, Reason, Rejection, RetryError, Verdict,
    What, clock,
};
use tracing::Level;

use crate::semconv::REASON_DELAY;

/// The fields of one record; what isn't known isn't written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record<'a> {
    pub(super) message: &'static str,
    pub(super) dependency: Option<&'static str>,
    pub(super) operation_id: Option<OperationId>,
    pub(super) idempotency_key_hash: Option<Hex>,
    pub(super) attempt_number: Option<i64>,
    pub(super) max_total_attempts: Option<i64>,
    pub(super) outcome: Option<&'static str>,
    pub(super) rpc_status_code: Option<&'static str>,
    pub(super) retry_reason: Option<&'static str>,
    pub(super) retryable: Option<bool>,
    pub(super) not_resent_reason: Option<&'static str>,
    pub(super) backoff_ms: Option<i64>,
    pub(super) remaining_deadline_ms: Option<i64>,
    pub(super) attempt_timeout_ms: Option<i64>,
    pub(super) elapsed_total_ms: Option<i64>,
    pub(super) late_ms: Option<i64>,
    pub(super) breaker_state: Option<&'static str>,
    pub(super) breaker_decision: Option<&'static str>,
    pub(super) breaker_cause: Option<&'static str>,
    pub(super) breaker_key: Option<&'a str>,
    pub(super) queue_wait_ms: Option<i64>,
    pub(super) rate_limit_wait_ms: Option<i64>,
    pub(super) limit_in_force: Option<i64>,
    pub(super) priority: Option<&'static str>,
    pub(super) fallback: Option<&'static str>,
    pub(super) error: Option<&'a (dyn Error + 'static)>,
}

/// 16 hexadecimal digits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hex(NonZeroU64);

impl Display for Hex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Says how loud an event is. Of all that one failed operation reports, exactly one is a warning.
pub(super) fn level(context: &CallContext, what: &What<'_>) -> Level {
    // A retry around this one, or around the layer that rejected, has the last word and says it itself.
    let answered_further_out = context.is_inside_retry();
    let inside_an_attempt = context.max_attempts() > 0;
    match *what {
        What::NotResent { verdict, .. } if verdict.blames_dependency() && !answered_further_out => {
            Level::WARN
        }
        // Refused inside, and so no failure that could be sent again.
        What::OperationEnded { verdict, .. }
            if verdict.class() == Class::Ignored && !answered_further_out =>
        {
            Level::WARN
        }
        What::Rejected(rejection) if rejection.reason() == Reason::BodyIdle => Level::WARN,
        What::Rejected(_) if !inside_an_attempt && !answered_further_out => Level::WARN,
        // Ours have been reported where they arose; of any other error this is the only trace.
        What::ErrorAnswered { error, .. }
            if Rejection::of(error).is_none() && RetryError::of(error).is_none() =>
        {
            Level::WARN
        }
        What::MalformedDeadline { .. }
        | What::CheckFailed { .. }
        | What::PoliciesReloaded { refused: Some(_) } => Level::WARN,
        What::Key { step, .. } if step.is_alert() => Level::WARN,
        // Once for many calls: whoever is on duty wants to know.
        What::BreakerTransition(change) => match change.to {
            Some(BreakerState::Open | BreakerState::ForcedOpen) => Level::WARN,
            Some(_) => Level::INFO,
            None => Level::DEBUG,
        },
        What::BreakerOperated { .. } | What::RateLimitStoreAway { .. } => Level::WARN,
        What::ResendScheduled { .. }
        | What::SentTransparently { .. }
        | What::DeadlineClamped { .. }
        | What::SkewSuspected
        | What::LateWork { .. }
        | What::FaultInjected { .. }
        | What::HedgeSent { .. }
        | What::FellBack { .. }
        | What::RateLimitHeard { .. }
        | What::RateLimitStoreBack { .. }
        | What::PoliciesReloaded { .. }
        | What::Nested { .. } => Level::INFO,
        _ => Level::DEBUG,
    }
}

impl<'a> Record<'a> {
    pub(super) fn of(context: &CallContext, what: &What<'a>) -> Self {
        let record = Self::about(context);
        match *what {
            What::AttemptEnded { verdict } => record.judged("attempt ended", verdict),
            What::ResendScheduled {
                reason,
                wait,
                remaining,
                ..
            } => Self {
                message: "resend scheduled",
                retry_reason: Some(reason.as_str()),
                retryable: Some(true),
                backoff_ms: Some(millis(wait)),
                remaining_deadline_ms: remaining.map(millis),
                ..record
            },
            What::SentTransparently { reason } => Self {
                message: "attempt sent again, as it was never processed",
                retry_reason: Some(reason.as_str()),
                retryable: Some(true),
                ..record
            },
            What::NotResent { verdict, reason } => Self {
                retryable: Some(false),
                not_resent_reason: Some(reason.as_str()),
                ..record.judged("operation failed, not sent again", verdict)
            },
            What::OperationEnded {
                verdict,
                attempts,
                elapsed,
            } => Self {
                attempt_number: Some(i64::from(attempts)),
                elapsed_total_ms: Some(millis(elapsed)),
                ..record.judged("operation ended", verdict)
            },
            What::Rejected(rejection) => record.rejected(rejection),
            What::KeyAdded { hash } => Self {
                message: "idempotency key added",
                idempotency_key_hash: Some(Hex(hash)),
                ..record
            },
            What::Nested { .. } => record.saying("retry inside another retry"),
            What::MalformedDeadline { .. } => record.saying("malformed deadline header"),
            What::DeadlineClamped { granted, .. } => Self {
                message: "deadline of the caller clamped",
                remaining_deadline_ms: Some(millis(granted)),
                ..record
            },
            What::SkewSuspected => record.saying("deadline of the caller not believed"),
            What::ErrorAnswered { error, .. } => Self {
                message: "error answered with a response",
                error: Some(error),
                ..record
            },
            What::LateWork { late } => Self {
                message: "work went on after the deadline",
                late_ms: Some(millis(late)),
                ..record
            },
            What::FaultInjected { fault } => Self {
                message: "fault injected on purpose",
                outcome: Some(fault),
                ..record
            },
            _ => record.protected(what),
        }
    }

    /// What somebody asked for from outside, and whether it was done.
    fn operated(self, action: &'static str, refused: Option<&'static str>) -> Self {
        let message = match refused {
            None => "breaker operated from outside",
            Some(_) => "breaker not operated from outside: refused",
        };
        Self {
            message,
            outcome: Some(refused.unwrap_or(action)),
            ..self
        }
    }

    fn missing(self, name: &'static str, error: &'a (dyn Error + 'static)) -> Self {
        Self {
            message: "not ready: a dependency is not there yet",
            outcome: Some(name),
            error: Some(error),
            ..self
        }
    }

    /// What a rate limit did.
    fn limited(self, what: &What<'a>) -> Self {
        match *what {
            What::RateLimitWaited { waited } => Self {
                message: "call waited for its turn",
                rate_limit_wait_ms: Some(millis(waited)),
                ..self
            },
            What::RateLimitHeard { wait } => Self {
                message: "the dependency's own rate limit is used up",
                backoff_ms: Some(millis(wait)),
                ..self
            },
            What::RateLimitStoreAway { error } => Self {
                message: "a shared rate limit can't be asked: each replica goes by its share",
                error: Some(error),
                ..self
            },
            What::RateLimitStoreBack { .. } => Self {
                message: "a shared rate limit is asked again",
                ..self
            },
            _ => self,
        }
    }

    /// What the protecting layers say.
    fn protected(self, what: &What<'a>) -> Self {
        match *what {
            What::CheckFailed { name, error, .. } => self.missing(name, error),
            What::BreakerTransition(change) => self.changed(change),
            What::BreakerOperated { action, refused } => self.operated(action, refused),
            What::Shadowed(rejection) => Self {
                message: "call would have been refused",
                ..self.rejected(rejection)
            },
            What::QueueWaited { waited, limit } => Self {
                message: "call waited for its place",
                queue_wait_ms: Some(millis(waited)),
                limit_in_force: Some(whole(limit)),
                ..self
            },
            What::LimitChanged { to, .. } => Self {
                message: "limit moved",
                limit_in_force: Some(whole(to)),
                ..self
            },
            What::RateLimitWaited { .. }
            | What::RateLimitHeard { .. }
            | What::RateLimitStoreAway { .. }
            | What::RateLimitStoreBack { .. } => self.limited(what),
            What::HedgeSent {
                attempt,
                reason,
                delay,
                ..
            } => Self {
                message: "hedge sent",
                attempt_number: Some(i64::from(attempt)),
                retry_reason: Some(reason.map_or(REASON_DELAY, Kind::as_str)),
                backoff_ms: Some(millis(delay)),
                ..self
            },
            What::HedgeWon { attempt } => Self {
                message: "hedge won",
                attempt_number: Some(i64::from(attempt)),
                ..self
            },
            What::HedgeOff { reason } => Self {
                message: "not hedged",
                not_resent_reason: Some(reason.as_str()),
                ..self
            },
            What::FellBack { verdict, ended } => Self {
                fallback: Some(ended.as_str()),
                ..self.judged("fell back", verdict)
            },
            What::Key { hash, step, error } => Self {
                message: "idempotency key",
                idempotency_key_hash: hash.map(Hex),
                outcome: Some(step.as_str()),
                error,
                ..self
            },
            What::PoliciesReloaded { refused } => self.reloaded(refused),
            What::Shed { by, priority } => Self {
                message: "call shed",
                outcome: Some(by.as_str()),
                priority,
                ..self
            },
            _ => self.saying("something happened"),
        }
    }

    fn reloaded(self, refused: Option<&'a (dyn Error + 'static)>) -> Self {
        let message = match refused {
            Some(_) => "policies refused, the old ones stay",
            None => "policies reloaded",
        };
        Self {
            message,
            error: refused,
            ..self
        }
    }

    fn changed(self, change: &'a Transition) -> Self {
        Self {
            message: match change.to {
                Some(BreakerState::Closed) => "breaker closed",
                Some(BreakerState::HalfOpen) => "breaker half-open",
                Some(BreakerState::Open) => "breaker open",
                Some(BreakerState::ForcedOpen) => "breaker forced open",
                Some(BreakerState::Disabled) => "breaker disabled",
                None => "breaker of a key gone",
            },
            dependency: named(change.dependency).or(self.dependency),
            breaker_state: Some(change.to.unwrap_or(change.from).as_str()),
            breaker_decision: None,
            breaker_cause: Some(change.cause.as_str()),
            breaker_key: change.key.as_deref(),
            backoff_ms: change.wait.map(millis),
            ..self
        }
    }

    /// What the context alone knows.
    fn about(context: &CallContext) -> Self {
        let now = clock::now();
        let attempt_timeout = context.attempt_timeout();
        let since = |started| now.saturating_duration_since(started);
        let (state, decision) = context.breaker().unzip();
        Self {
            message: "",
            dependency: named(context.dependency()),
            operation_id: context.operation(),
            idempotency_key_hash: context.key_hash().map(Hex),
            attempt_number: at_least_one(context.attempt()),
            max_total_attempts: at_least_one(context.max_attempts()),
            outcome: None,
            rpc_status_code: None,
            retry_reason: None,
            retryable: None,
            not_resent_reason: None,
            backoff_ms: None,
            remaining_deadline_ms: context.deadline().map(|d| millis(d.remaining(now))),
            attempt_timeout_ms: (!attempt_timeout.is_zero()).then(|| millis(attempt_timeout)),
            elapsed_total_ms: context.started().map(since).map(millis),
            late_ms: None,
            breaker_state: state.map(BreakerState::as_str),
            breaker_decision: decision.map(BreakerDecision::as_str),
            breaker_cause: None,
            breaker_key: None,
            queue_wait_ms: context.queue_wait().map(millis),
            rate_limit_wait_ms: context.rate_limit_wait().map(millis),
            limit_in_force: context.limit_in_force().map(whole),
            priority: None,
            fallback: None,
            error: None,
        }
    }

    fn saying(self, message: &'static str) -> Self {
        Self { message, ..self }
    }

    fn judged(self, message: &'static str, verdict: Verdict) -> Self {
        Self {
            message,
            outcome: Some(match verdict.class() {
                Class::Ignored => "rejected",
                _ => verdict.as_str(),
            }),
            rpc_status_code: verdict.code().map(Code::as_str),
            ..self
        }
    }

    fn rejected(self, rejection: &'a Rejection) -> Self {
        Self {
            message: if rejection.sent() {
                "call cut"
            } else {
                "call refused"
            },
            dependency: named(rejection.dependency()).or(self.dependency),
            outcome: Some(rejection.reason().as_str()),
            error: Some(rejection),
            ..self
        }
    }
}

fn named(dependency: Dependency) -> Option<&'static str> {
    (!dependency.is_unnamed()).then(|| dependency.as_str())
}

fn at_least_one(count: u32) -> Option<i64> {
    (count > 0).then(|| i64::from(count))
}

fn whole(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
