//! How a caller is told why its request was not run.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, LINK};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use mamparo_core::KeyStep;
use mamparo_core::grpc::{self, Code, Pushback};

use super::IdempotencyBuilder;
use super::state::Refusal;
use crate::problem::{Problem, ProblemType, RETRY_AFTER_JITTER, spread};

/// A type of this layer's; each is a heading in the docs of the module.
macro_rules! ours {
    ($name:literal, $title:literal, $status:ident) => {
        ProblemType::new(
            concat!(
                "https://docs.rs/mamparo/latest/mamparo/idempotency/index.html#",
                $name
            ),
            $title,
            StatusCode::$status,
        )
    };
}

const MISSING: ProblemType = ours!(
    "idempotency-key-missing",
    "Idempotency-Key Is Missing",
    BAD_REQUEST
);
const MALFORMED: ProblemType = ours!(
    "idempotency-key-malformed",
    "Idempotency-Key Is Malformed",
    BAD_REQUEST
);
const WITHOUT_OWNER: ProblemType = ours!(
    "idempotency-key-without-owner",
    "Idempotency-Key Has No Owner",
    FORBIDDEN
);
const IN_PROGRESS: ProblemType = ours!(
    "idempotency-key-in-progress",
    "A Request Is Outstanding for This Idempotency-Key",
    CONFLICT
);
const REUSED: ProblemType = ours!(
    "idempotency-key-reused",
    "Idempotency-Key Is Already Used",
    UNPROCESSABLE_ENTITY
);
const NOT_KEPT: ProblemType = ours!(
    "idempotency-answer-not-kept",
    "The Answer for This Idempotency-Key Was Not Kept",
    CONFLICT
);
const INDETERMINATE: ProblemType = ours!(
    "idempotency-outcome-indeterminate",
    "The Outcome for This Idempotency-Key Is Not Known",
    INTERNAL_SERVER_ERROR
);
const INDETERMINATE_CONFLICT: ProblemType = ours!(
    "idempotency-outcome-indeterminate",
    "The Outcome for This Idempotency-Key Is Not Known",
    CONFLICT
);
const STORE_UNAVAILABLE: ProblemType = ours!(
    "idempotency-store-unavailable",
    "Idempotency Keys Can't Be Checked Now",
    SERVICE_UNAVAILABLE
);

/// All of them, each with a heading in the module's docs and in `docs/problems/idempotency.md`.
#[cfg(test)]
pub(super) const ALL: [ProblemType; 8] = [
    MISSING,
    MALFORMED,
    WITHOUT_OWNER,
    IN_PROGRESS,
    REUSED,
    NOT_KEPT,
    INDETERMINATE,
    STORE_UNAVAILABLE,
];

/// What a refusal says.
struct Told {
    problem: Problem,
    code: Code,
    /// How long the caller should wait; without, the same request will never be served.
    wait: Option<Wait>,
}

struct Wait {
    least: Duration,
    /// By how much of it a wait is lengthened, so that all who were refused at once don't come back at once.
    jitter: f64,
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

    fn told(self, settings: &IdempotencyBuilder) -> Told {
        let (kind, code, detail) = self.words(settings);
        let problem = kind.map_or_else(|| Problem::blank(StatusCode::BAD_REQUEST), Problem::new);
        let least = settings.retry_after;
        let wait = match self {
            Self::InProgress | Self::Lost => Some(Wait { least, jitter: 0.0 }),
            Self::StoreFailed => Some(Wait {
                least,
                jitter: RETRY_AFTER_JITTER,
            }),
            _ => None,
        };
        Told {
            problem: problem.with_detail(detail),
            code,
            wait,
        }
    }

    const fn words(
        self,
        settings: &IdempotencyBuilder,
    ) -> (Option<ProblemType>, Code, &'static str) {
        match self {
            Self::Missing => (
                Some(MISSING),
                Code::InvalidArgument,
                "this request needs a key: make a new one for each operation, and send it again with every attempt",
            ),
            Self::Malformed(why) => (Some(MALFORMED), Code::InvalidArgument, why),
            Self::NoPrincipal => (
                Some(WITHOUT_OWNER),
                Code::PermissionDenied,
                "a key belongs to whoever sends it, and that can't be told of this request",
            ),
            Self::Unreadable => (
                None,
                Code::Cancelled,
                "the request's body broke off, and nothing was done",
            ),
            Self::Mismatch => (
                Some(REUSED),
                Code::InvalidArgument,
                "the key belongs to another request: send that one, or this one with a new key",
            ),
            Self::InProgress => (
                Some(IN_PROGRESS),
                Code::Aborted,
                "the first request with this key is being processed",
            ),
            Self::Lost => (
                Some(IN_PROGRESS),
                Code::Aborted,
                "another attempt with this key has taken over",
            ),
            Self::NotKept => (
                Some(NOT_KEPT),
                Code::AlreadyExists,
                "the request was processed, and is not processed again: its answer or its body was too large to be kept",
            ),
            Self::Indeterminate => (
                Some(match settings.indeterminate_status {
                    StatusCode::CONFLICT => INDETERMINATE_CONFLICT,
                    _ => INDETERMINATE,
                }),
                Code::Unknown,
                "processing the request was begun, and nobody knows whether it took effect: it is not processed again",
            ),
            Self::StoreFailed => (
                Some(STORE_UNAVAILABLE),
                Code::Unavailable,
                "the request was not processed",
            ),
        }
    }
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
    let (problem, jitter) = match told.wait {
        Some(Wait { least, jitter }) => (told.problem.with_retry_after(least), jitter),
        None => (told.problem, 0.0),
    };
    let mut response = problem.answer(jitter, true).map(Bytes::from);
    link(settings, response.headers_mut());
    response
}

/// Where callers read of the keys (draft-07 §2.7).
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
    let detail = grpc::message::encode(told.problem.detail());
    headers.insert(grpc::GRPC_MESSAGE, detail);
    let pushback = match told.wait {
        Some(Wait { least, jitter }) => Pushback::After(spread(least, jitter)),
        None => Pushback::Stop,
    };
    headers.insert(grpc::GRPC_RETRY_PUSHBACK_MS, pushback.value());
    response
}
