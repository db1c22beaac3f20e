//! In which form an error is written, and how HTTP's is.

use std::time::Duration;

use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Method, Request, Response};
use mamparo_core::Ending;
use mamparo_core::grpc::is_grpc;

use super::RejectionPolicy;
use super::state::{Problem, Told, is_exhausted};

const PROBLEM: HeaderValue = HeaderValue::from_static("application/problem+json");
/// The registry of RFC 9457 §4.2, for which draft-ietf-httpapi-ratelimit-headers-10 §6 asks for two types.
const PROBLEM_TYPES: &str = "https://iana.org/assignments/http-problem-types";
const EXHAUSTED: HeaderValue = HeaderValue::from_static("exhausted");

/// The form in which a request's error is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// `application/problem+json`.
    Problem,
    /// Its headers only: the request was HEAD.
    Head,
    /// Trailers: alone, or after what has been sent.
    Grpc,
}

impl Form {
    /// Tells by what a request asks, and in what it is written.
    #[inline]
    pub(super) fn of<B>(request: &Request<B>) -> Self {
        if request.method() == Method::HEAD {
            return Self::Head;
        }
        if is_grpc(request.headers()) {
            Self::Grpc
        } else {
            Self::Problem
        }
    }
}

/// Writes what a caller of HTTP's is told.
#[cold]
pub(super) fn write(policy: &RejectionPolicy, told: &Told) -> Response<String> {
    let mut response = problem(told);
    if let Some(wait) = told.retry_after() {
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
