//! What the caller is told of an error.

use std::error::Error;
use std::time::Duration;

use http::StatusCode;
use mamparo_core::{Ending, Kind, NotResent, Reason, Rejection, RetryError, TransportError};

use super::RejectionPolicy;

/// `DEADLINE_EXCEEDED`, of gRPC's status codes.
const DEADLINE_EXCEEDED: u8 = 4;
/// `RESOURCE_EXHAUSTED`.
const RESOURCE_EXHAUSTED: u8 = 8;
/// `INTERNAL`.
const INTERNAL: u8 = 13;
/// `UNAVAILABLE`.
const UNAVAILABLE: u8 = 14;

/// What the caller is told of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) status: StatusCode,
    pub(super) grpc_status: u8,
    /// Our own words, that stand in JSON and in a header as they are: nothing of the error's text, nothing that the
    /// caller sent.
    pub(super) detail: &'static str,
    pub(super) retry_after: Option<Duration>,
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

/// What a caller is told to wait that was refused for want of capacity, where nobody knows how long that lasts.
const REFUSED_RETRY_AFTER: Duration = Duration::from_secs(1);

/// Says what the caller is told of an error.
pub(super) fn tell(policy: &RejectionPolicy, error: &(dyn Error + 'static)) -> Told {
    let rejection = Rejection::of(error);
    let failed = RetryError::of(error);
    let transport = TransportError::of(error).map(|error| error.verdict().kind());
    let (status, grpc_status, detail) = match rejection {
        Some(rejection) => by_rejection(policy, rejection),
        None if transport == Some(Some(Kind::Timeout)) => {
            by_reason(policy, Reason::AttemptTimedOut)
        }
        None if failed.is_some() || transport.is_some() => DEPENDENCY_FAILED,
        None => (
            StatusCode::INTERNAL_SERVER_ERROR,
            INTERNAL,
            "the request could not be answered",
        ),
    };
    let reason = rejection.map(Rejection::reason);
    let known = rejection.and_then(Rejection::retry_after);
    let wants = reason.is_some_and(wants_capacity);
    Told {
        status,
        grpc_status,
        detail,
        problem: match reason {
            Some(Reason::RateLimited) if status == StatusCode::TOO_MANY_REQUESTS => {
                Problem::QuotaExceeded("rate-limit")
            }
            Some(Reason::BulkheadFull) => Problem::ReducedCapacity("bulkhead"),
            Some(Reason::Overloaded) => Problem::ReducedCapacity("load-shed"),
            _ => Problem::Blank,
        },
        retry_after: known.or(wants.then_some(REFUSED_RETRY_AFTER)),
        exhausted: failed.is_some_and(|failed| is_exhausted(&failed.ending())),
    }
}

/// Tells whether an operation ended because all of its attempts were spent; one attempt alone leaves resends to the
/// caller.
pub(super) fn is_exhausted(ending: &Ending) -> bool {
    ending.attempts() > 1 && ending.not_resent() == Some(NotResent::AttemptsExhausted)
}

const DEPENDENCY_FAILED: (StatusCode, u8, &str) = (
    StatusCode::BAD_GATEWAY,
    UNAVAILABLE,
    "a service behind this one failed",
);

/// Tells whether a later request may find what this one did not.
const fn wants_capacity(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::BreakerOpen | Reason::BulkheadFull | Reason::RateLimited | Reason::Overloaded
    )
}

fn by_rejection(policy: &RejectionPolicy, rejection: &Rejection) -> (StatusCode, u8, &'static str) {
    match rejection.reason() {
        // A limit on the server's own callers names no dependency; one on a dependency is not the caller's fault.
        Reason::RateLimited if rejection.dependency().is_unnamed() => (
            StatusCode::TOO_MANY_REQUESTS,
            RESOURCE_EXHAUSTED,
            "too many requests",
        ),
        reason => by_reason(policy, reason),
    }
}

fn by_reason(policy: &RejectionPolicy, reason: Reason) -> (StatusCode, u8, &'static str) {
    let behind = "a service behind this one did not answer in time";
    match reason {
        Reason::DeadlineExceeded => (
            policy.timeout_status(),
            DEADLINE_EXCEEDED,
            "the deadline passed before the answer was complete",
        ),
        Reason::AttemptTimedOut | Reason::BodyIdle => {
            (policy.timeout_status(), DEADLINE_EXCEEDED, behind)
        }
        // Never sent: unlike the others, it is safe to ask again.
        Reason::ConnectTimedOut => (policy.timeout_status(), UNAVAILABLE, behind),
        // gRPC keeps INVALID_ARGUMENT to applications: no library may send it.
        Reason::MalformedDeadline => (
            StatusCode::BAD_REQUEST,
            INTERNAL,
            "the deadline header of the request is malformed",
        ),
        Reason::BreakerOpen => (
            StatusCode::SERVICE_UNAVAILABLE,
            UNAVAILABLE,
            "a service behind this one is not asked for now",
        ),
        Reason::BulkheadFull => (
            StatusCode::SERVICE_UNAVAILABLE,
            RESOURCE_EXHAUSTED,
            "as many requests as can be taken are under way",
        ),
        Reason::RateLimited => (
            StatusCode::SERVICE_UNAVAILABLE,
            RESOURCE_EXHAUSTED,
            "a service behind this one is asked as often as it may be",
        ),
        Reason::AboveBurst => (
            StatusCode::PAYLOAD_TOO_LARGE,
            RESOURCE_EXHAUSTED,
            "the request asks for more than is ever served at once",
        ),
        // Another instance may have room: UNAVAILABLE is what gRPC clients send again.
        _ => (
            StatusCode::SERVICE_UNAVAILABLE,
            UNAVAILABLE,
            "the request was refused to protect the service",
        ),
    }
}
