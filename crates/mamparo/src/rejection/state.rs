//! What the caller is told of an error.

use std::error::Error;
use std::time::Duration;

use http::StatusCode;
use mamparo_core::grpc::{Code, Pushback};
use mamparo_core::{Ending, Kind, NotResent, Reason, Rejection, RetryError, TransportError};

use super::RejectionPolicy;

/// What the caller is told of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) status: StatusCode,
    pub(super) code: Code,
    /// Our own words, that stand in JSON and in a header as they are: nothing of the error's text, nothing that the
    /// caller sent.
    pub(super) detail: &'static str,
    /// How long the caller should wait, where somebody knows.
    pub(super) wait: Option<Duration>,
    /// A later request may find what this one did not.
    pub(super) wants_capacity: bool,
    /// No later request will.
    pub(super) hopeless: bool,
    /// The error is neither ours nor a dependency's: somebody inside made it.
    pub(super) foreign: bool,
    pub(super) exhausted: bool,
    pub(super) problem: Problem,
}

/// The type of a problem; draft-ietf-httpapi-ratelimit-headers-10 §6 has two that fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Problem {
    /// No more than the status.
    Blank,
    /// The caller used up what this policy gives it.
    QuotaExceeded(&'static str),
    /// The service can take less than it usually does, by this policy.
    ReducedCapacity(&'static str),
}

/// What a caller of HTTP's is told to wait that was refused for want of capacity, where nobody knows how long that lasts.
const REFUSED_RETRY_AFTER: Duration = Duration::from_secs(1);

impl Told {
    /// What HTTP is told: a guess where nobody knows, since its clients wait at least that long.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        let guess = self.wants_capacity.then_some(REFUSED_RETRY_AFTER);
        self.wait.or(guess)
    }

    /// What gRPC is told: what is known and nothing else, since its clients all come at exactly that moment (gRFC A6).
    pub(super) fn pushback(&self, tells_exhausted: bool) -> Option<Pushback> {
        let never = self.hopeless || (self.exhausted && tells_exhausted);
        match self.wait {
            Some(wait) => Some(Pushback::After(wait)),
            None => never.then_some(Pushback::Stop),
        }
    }
}

/// Says what the caller is told of an error.
pub(super) fn tell(policy: &RejectionPolicy, error: &(dyn Error + 'static)) -> Told {
    let rejection = Rejection::of(error);
    let failed = RetryError::of(error);
    let transport = TransportError::of(error).map(|error| error.verdict().kind());
    let reason = rejection.map(Rejection::reason);
    let (status, detail, code) = match rejection {
        Some(rejection) => {
            let (status, detail) = by_rejection(policy, rejection);
            (status, detail, Code::of_rejection(rejection))
        }
        None if transport == Some(Some(Kind::Timeout)) => {
            let (status, detail) = by_reason(policy, Reason::AttemptTimedOut);
            (status, detail, Code::DeadlineExceeded)
        }
        None if failed.is_some() || transport.is_some() => DEPENDENCY_FAILED,
        None => (
            StatusCode::INTERNAL_SERVER_ERROR,
            "the request could not be answered",
            Code::Internal,
        ),
    };
    Told {
        status,
        code,
        detail,
        problem: match reason {
            Some(Reason::RateLimited) if status == StatusCode::TOO_MANY_REQUESTS => {
                Problem::QuotaExceeded("rate-limit")
            }
            Some(Reason::BulkheadFull) => Problem::ReducedCapacity("bulkhead"),
            Some(Reason::Overloaded) => Problem::ReducedCapacity("load-shed"),
            _ => Problem::Blank,
        },
        wait: rejection.and_then(Rejection::retry_after),
        wants_capacity: reason.is_some_and(wants_capacity),
        foreign: reason.is_none() && failed.is_none() && transport.is_none(),
        hopeless: reason == Some(Reason::AboveBurst),
        exhausted: failed.is_some_and(|failed| is_exhausted(&failed.ending())),
    }
}

/// Tells whether an operation ended because all of its attempts were spent; one attempt alone leaves resends to the
/// caller.
pub(super) fn is_exhausted(ending: &Ending) -> bool {
    ending.attempts() > 1 && ending.not_resent() == Some(NotResent::AttemptsExhausted)
}

const DEPENDENCY_FAILED: (StatusCode, &str, Code) = (
    StatusCode::BAD_GATEWAY,
    "a service behind this one failed",
    Code::Unavailable,
);

/// Tells whether a later request may find what this one did not.
const fn wants_capacity(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::BreakerOpen | Reason::BulkheadFull | Reason::RateLimited | Reason::Overloaded
    )
}

fn by_rejection(policy: &RejectionPolicy, rejection: &Rejection) -> (StatusCode, &'static str) {
    match rejection.reason() {
        // A limit on the server's own callers names no dependency; one on a dependency is not the caller's fault.
        Reason::RateLimited if rejection.dependency().is_unnamed() => {
            (StatusCode::TOO_MANY_REQUESTS, "too many requests")
        }
        reason => by_reason(policy, reason),
    }
}

fn by_reason(policy: &RejectionPolicy, reason: Reason) -> (StatusCode, &'static str) {
    let behind = "a service behind this one did not answer in time";
    match reason {
        Reason::DeadlineExceeded => (
            policy.timeout_status(),
            "the deadline passed before the answer was complete",
        ),
        Reason::AttemptTimedOut | Reason::BodyIdle => (policy.timeout_status(), behind),
        Reason::ConnectTimedOut => (policy.timeout_status(), behind),
        Reason::MalformedDeadline => (
            StatusCode::BAD_REQUEST,
            "the deadline header of the request is malformed",
        ),
        Reason::BreakerOpen => (
            StatusCode::SERVICE_UNAVAILABLE,
            "a service behind this one is not asked for now",
        ),
        Reason::BulkheadFull => (
            StatusCode::SERVICE_UNAVAILABLE,
            "as many requests as can be taken are under way",
        ),
        Reason::RateLimited => (
            StatusCode::SERVICE_UNAVAILABLE,
            "a service behind this one is asked as often as it may be",
        ),
        Reason::AboveBurst => (
            StatusCode::PAYLOAD_TOO_LARGE,
            "the request asks for more than is ever served at once",
        ),
        _ => (
            StatusCode::SERVICE_UNAVAILABLE,
            "the request was refused to protect the service",
        ),
    }
}
