//! What the caller is told of an error.

use std::error::Error;
use std::time::Duration;

use http::StatusCode;
use mamparo_core::{Ending, Kind, NotResent, Reason, Rejection, RetryError, TransportError};

use super::RejectionPolicy;

/// `DEADLINE_EXCEEDED`, of gRPC's status codes.
const DEADLINE_EXCEEDED: u8 = 4;
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
}

/// Says what the caller is told of an error.
pub(super) fn tell(policy: &RejectionPolicy, error: &(dyn Error + 'static)) -> Told {
    let rejection = Rejection::of(error);
    let failed = RetryError::of(error);
    let transport = TransportError::of(error).map(|error| error.verdict().kind());
    let (status, grpc_status, detail) = match rejection.map(Rejection::reason) {
        Some(reason) => by_reason(policy, reason),
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
    Told {
        status,
        grpc_status,
        detail,
        retry_after: rejection.and_then(Rejection::retry_after),
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
        _ => (
            StatusCode::SERVICE_UNAVAILABLE,
            UNAVAILABLE,
            "the request was refused to protect the service",
        ),
    }
}
