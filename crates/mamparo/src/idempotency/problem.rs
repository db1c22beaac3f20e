//! How a caller is told why its request was not run.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, LINK, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use mamparo_core::KeyStep;
use mamparo_core::grpc::{self, Code, Pushback};

use super::IdempotencyBuilder;
use super::state::Refusal;

/// Where the types of these problems are named that no registry has; `docs/problems/` says what each means.
const TYPES: &str = "urn:mamparo:problem:";

/// What a refusal says.
struct Told {
    status: StatusCode,
    code: Code,
    /// The last part of the problem's type.
    name: &'static str,
    title: &'static str,
    detail: &'static str,
    wait: Option<Duration>,
    hopeless: bool,
}

impl Refusal {
    /// How events name it.
    pub(super) const fn step(self) -> KeyStep {
        match self {
            Self::Missing => KeyStep::Missing,
            Self::Malformed(_) => KeyStep::Malformed,
            Self::NoPrincipal => KeyStep::NoPrincipal,
            Self::Unreadable => KeyStep::Unreadable,
            Self::InProgress => KeyStep::InProgress,
            Self::Mismatch => KeyStep::Mismatch,
            Self::NotKept => KeyStep::NotKept,
            Self::Indeterminate => KeyStep::Indeterminate,
            Self::Lost => KeyStep::Lost,
            Self::StoreFailed => KeyStep::StoreFailed,
        }
    }

    #[expect(clippy::too_many_lines, reason = "a table: one entry a refusal")]
    fn told(self, settings: &IdempotencyBuilder) -> Told {
        let told = |status, code, name, title, detail| Told {
            status,
            code,
            name,
            title,
            detail,
            wait: None,
            hopeless: true,
        };
        let in_progress = |detail| Told {
            wait: Some(settings.retry_after),
            hopeless: false,
            ..told(
                StatusCode::CONFLICT,
                Code::Aborted,
                "idempotency-key-in-progress",
                "A request is outstanding for this Idempotency-Key",
                detail,
            )
        };
        match self {
            Self::Missing => told(
                StatusCode::BAD_REQUEST,
                Code::InvalidArgument,
                "idempotency-key-missing",
                "Idempotency-Key is missing",
                "this request needs a key: make a new one for each operation, and send it again with every attempt",
            ),
            Self::Malformed(why) => told(
                StatusCode::BAD_REQUEST,
                Code::InvalidArgument,
                "idempotency-key-malformed",
                "Idempotency-Key is malformed",
                why,
            ),
            Self::NoPrincipal => told(
                StatusCode::FORBIDDEN,
                Code::PermissionDenied,
                "idempotency-key-without-owner",
                "Idempotency-Key has no owner",
                "a key belongs to whoever sends it, and that can't be told of this request",
            ),
            Self::Unreadable => Told {
                hopeless: false,
                ..told(
                    StatusCode::BAD_REQUEST,
                    Code::Cancelled,
                    "request-incomplete",
                    "Request is incomplete",
                    "the request's body broke off, and nothing was done",
                )
            },
            Self::Mismatch => told(
                StatusCode::UNPROCESSABLE_ENTITY,
                Code::InvalidArgument,
                "idempotency-key-reused",
                "Idempotency-Key is already used",
                "the key belongs to another request: send that one, or this one with a new key",
            ),
            Self::InProgress => in_progress("the first request with this key is being processed"),
            Self::Lost => in_progress("another attempt with this key has taken over"),
            Self::NotKept => told(
                StatusCode::CONFLICT,
                Code::AlreadyExists,
                "idempotency-answer-not-kept",
                "The answer for this Idempotency-Key was not kept",
                "the request was processed, and is not processed again: its answer or its body was too large to be kept",
            ),
            Self::Indeterminate => told(
                settings.indeterminate_status,
                Code::Unknown,
                "idempotency-outcome-indeterminate",
                "The outcome for this Idempotency-Key is unknown",
                "processing the request was begun, and nobody knows whether it took effect: it is not processed again",
            ),
            Self::StoreFailed => Told {
                wait: Some(spread(settings.retry_after)),
                hopeless: false,
                ..told(
                    StatusCode::SERVICE_UNAVAILABLE,
                    Code::Unavailable,
                    "idempotency-store-unavailable",
                    "Idempotency keys can't be checked now",
                    "the request was not processed",
                )
            },
        }
    }
}

/// So that all who were refused at once do not come back at once.
fn spread(wait: Duration) -> Duration {
    wait.mul_f64(1.0 + 2.0 * fastrand::f64())
}

/// Writes what the caller of a request is told.
#[cold]
pub(super) fn write(
    settings: &IdempotencyBuilder,
    refusal: Refusal,
    is_grpc: bool,
) -> Response<Bytes> {
    let told = refusal.told(settings);
    if is_grpc {
        return trailers_only(&told);
    }
    let Told {
        status,
        title,
        detail,
        name,
        ..
    } = told;
    let kind = match &settings.documentation {
        Some(url) => format!("{url}#{name}"),
        None => format!("{TYPES}{name}"),
    };
    // All of it is our own words, or checked when it was set: there is nothing to escape.
    let body = format!(
        r#"{{"type":"{kind}","title":"{title}","status":{},"detail":"{detail}"}}"#,
        status.as_u16()
    );
    let mut response = Response::new(Bytes::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    let problem = HeaderValue::from_static("application/problem+json");
    headers.insert(CONTENT_TYPE, problem);
    if let Some(wait) = told.wait {
        let begun = u64::from(wait.subsec_nanos() > 0);
        headers.insert(RETRY_AFTER, (wait.as_secs() + begun).into());
    }
    link(settings, headers);
    response
}

fn link(settings: &IdempotencyBuilder, headers: &mut HeaderMap) {
    let Some(url) = &settings.documentation else {
        return;
    };
    let link = format!(r#"<{url}>; rel="describedby"; type="text/html""#);
    if let Ok(link) = HeaderValue::try_from(link) {
        headers.insert(LINK, link);
    }
}

/// gRPC over HTTP/2, "Responses".
fn trailers_only(told: &Told) -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    let headers = response.headers_mut();
    let content_type = HeaderValue::from_static(grpc::CONTENT_TYPE);
    headers.insert(CONTENT_TYPE, content_type);
    let code = u16::from(told.code.number());
    headers.insert(grpc::GRPC_STATUS, code.into());
    headers.insert(grpc::GRPC_MESSAGE, grpc::message::encode(told.detail));
    let pushback = match told.wait {
        Some(wait) => Some(Pushback::After(wait)),
        None => told.hopeless.then_some(Pushback::Stop),
    };
    if let Some(pushback) = pushback {
        headers.insert(grpc::GRPC_RETRY_PUSHBACK_MS, pushback.value());
    }
    response
}
