//! How an error is written: as a problem, or as gRPC does.

use std::time::Duration;

use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderName, HeaderValue, Method, Request, Response};
use mamparo_core::Ending;

use super::RejectionPolicy;
use super::state::{Problem, Told, is_exhausted};

const PROBLEM: HeaderValue = HeaderValue::from_static("application/problem+json");
/// The registry of RFC 9457 §4.2, for which draft-ietf-httpapi-ratelimit-headers-10 §6 asks for two types.
const PROBLEM_TYPES: &str = "https://iana.org/assignments/http-problem-types";
const GRPC: &str = "application/grpc";
const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const EXHAUSTED: HeaderValue = HeaderValue::from_static("exhausted");

/// The form in which a request's error is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// `application/problem+json`.
    Problem,
    /// Its headers only: the request was HEAD.
    Head,
    /// Trailers-Only.
    Grpc,
}

impl Form {
    /// Tells by what a request asks, and in what it is written.
    #[inline]
    pub(super) fn of<B>(request: &Request<B>) -> Self {
        if request.method() == Method::HEAD {
            return Self::Head;
        }
        match request.headers().get(CONTENT_TYPE) {
            Some(value) if is_grpc(value.as_bytes()) => Self::Grpc,
            _ => Self::Problem,
        }
    }
}

/// `application/grpc`, alone or with a suffix or parameters; not `application/grpc-web`, whose trailers are a body.
fn is_grpc(content_type: &[u8]) -> bool {
    let Some((head, rest)) = content_type.split_at_checked(GRPC.len()) else {
        return false;
    };
    head.eq_ignore_ascii_case(GRPC.as_bytes())
        && matches!(rest.first(), None | Some(b'+' | b';' | b' '))
}

/// Writes what the caller is told.
#[cold]
pub(super) fn write(policy: &RejectionPolicy, told: &Told, form: Form) -> Response<String> {
    let mut response = match form {
        Form::Problem => problem(told),
        Form::Head => problem(told).map(|_| String::new()),
        Form::Grpc => trailers_only(told.grpc_status, told.detail),
    };
    if let Some(wait) = told.retry_after {
        let wait = HeaderValue::from(whole_seconds(wait));
        response.headers_mut().insert(RETRY_AFTER, wait);
    }
    if told.exhausted {
        mark_exhausted(policy, &mut response);
    }
    response
}

/// RFC 9457 §3. `about:blank` says that the problem is no other than the status; its title is the status's phrase.
fn problem(told: &Told) -> Response<String> {
    let (status, detail) = (told.status, told.detail);
    let phrase = status.canonical_reason().unwrap_or("Error");
    let (name, title, policy) = match told.problem {
        Problem::Blank => (None, phrase, None),
        Problem::QuotaExceeded(policy) => (Some("quota-exceeded"), "Quota Exceeded", Some(policy)),
        Problem::ReducedCapacity(policy) => (
            Some("temporary-reduced-capacity"),
            "Temporary Reduced Capacity",
            Some(policy),
        ),
    };
    let kind = name.map_or("about:blank".into(), |name| {
        format!("{PROBLEM_TYPES}#{name}")
    });
    let policies = policy.map(|policy| format!(r#","violated-policies":["{policy}"]"#));
    // All of it is our own words: there is nothing to escape.
    let body = format!(
        r#"{{"type":"{kind}","title":"{title}","status":{},"detail":"{detail}"{}}}"#,
        status.as_u16(),
        policies.unwrap_or_default()
    );
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, PROBLEM);
    response
}

fn trailers_only(status: u8, message: &'static str) -> Response<String> {
    let mut response = Response::new(String::new());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(GRPC));
    headers.insert(GRPC_STATUS, HeaderValue::from(u16::from(status)));
    // Plain words: what would have to be percent-encoded is not in them.
    headers.insert(GRPC_MESSAGE, HeaderValue::from_static(message));
    response
}

/// Rounded up: whoever is told to wait must not come early.
fn whole_seconds(wait: Duration) -> u64 {
    let begun = u64::from(wait.subsec_nanos() > 0);
    wait.as_secs().saturating_add(begun)
}

/// Marks a response that the handler hands on from an operation whose attempts are spent.
#[inline]
pub(super) fn hand_on<B>(policy: &RejectionPolicy, response: &mut Response<B>) {
    if Ending::of(response).is_some_and(is_exhausted) {
        mark_exhausted(policy, response);
    }
}

fn mark_exhausted<B>(policy: &RejectionPolicy, response: &mut Response<B>) {
    if let Some(name) = policy.exhausted() {
        // A response whose header map is full goes without.
        let _full = response.headers_mut().try_insert(name, EXHAUSTED);
    }
}
