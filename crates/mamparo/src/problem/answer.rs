//! A problem as a response of HTTP's.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response};

use super::json::Quoted;
use super::model::phrase;
use super::{Problem, ProblemType};

const PROBLEM: HeaderValue = HeaderValue::from_static("application/problem+json");

/// By how much of it a wait is lengthened at most, unless told otherwise.
pub const RETRY_AFTER_JITTER: f64 = 0.5;

/// Beside a response that a handler made of a problem: what only the server knows of it.
#[derive(Clone, Debug)]
pub(crate) struct Noted(pub(crate) Arc<Problem>);

impl Problem {
    /// Writes the problem as JSON (RFC 9457 §3).
    #[must_use]
    pub fn json(&self) -> String {
        self.json_naming(true)
    }

    fn json_naming(&self, names: bool) -> String {
        let status = self.status();
        let uri = self.kind().map_or("about:blank", ProblemType::uri);
        let title = self
            .kind()
            .map_or_else(|| phrase(status), ProblemType::title);
        let mut json = String::with_capacity(256);
        let mut member = |name: &str, value: &dyn std::fmt::Display| {
            let comma = if json.is_empty() { '{' } else { ',' };
            // Writing to a string does not fail.
            let _infallible = write!(json, "{comma}{}:{value}", Quoted(name));
        };
        member("type", &Quoted(uri));
        member("title", &Quoted(title));
        member("status", &status.as_u16());
        if !self.detail().is_empty() {
            member("detail", &Quoted(self.detail()));
        }
        if names && !self.dependency().is_unnamed() {
            member("dependency", &Quoted(self.dependency().as_str()));
        }
        for (name, value) in self.members() {
            member(name, value);
        }
        json.push('}');
        json
    }

    /// Makes the response: `application/problem+json`, with `Retry-After` where there is something to say.
    ///
    /// [`RejectionLayer`](crate::rejection::RejectionLayer) further out reports the cause, and tells the caller if all attempts
    /// were spent; with feature `axum` a handler may return the problem itself.
    #[must_use]
    pub fn into_response(self) -> Response<String> {
        let mut response = self.answer(RETRY_AFTER_JITTER, true);
        response.extensions_mut().insert(Noted(Arc::new(self)));
        response
    }

    pub(crate) fn answer(&self, jitter: f64, names: bool) -> Response<String> {
        let mut response = Response::new(self.json_naming(names));
        *response.status_mut() = self.status();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, PROBLEM);
        if let Some(wait) = self.retry_after() {
            let wait = later(whole_seconds(wait), jitter);
            headers.insert(RETRY_AFTER, HeaderValue::from(wait));
        }
        if let Some(quota) = self.quota() {
            quota.write(headers);
        }
        response
    }
}

/// Rounded up: whoever is told to wait must not come early.
fn whole_seconds(wait: Duration) -> u64 {
    let begun = u64::from(wait.subsec_nanos() > 0);
    wait.as_secs().saturating_add(begun)
}

/// Adds up to that share of it, a second at least, so that not all who are told at once come back at once; nothing to
/// no wait.
fn later(seconds: u64, jitter: f64) -> u64 {
    let most = (seconds as f64 * jitter).ceil();
    // As floats round, and saturate.
    seconds.saturating_add((fastrand::f64() * (most + 1.0)).min(most) as u64)
}

/// Adds up to that share of it.
pub(crate) fn spread(wait: Duration, jitter: f64) -> Duration {
    let longer = wait.as_secs_f64() * jitter * fastrand::f64();
    let longer = Duration::try_from_secs_f64(longer).unwrap_or(Duration::MAX);
    wait.saturating_add(longer)
}

#[cfg(feature = "axum")]
impl axum::response::IntoResponse for Problem {
    fn into_response(self) -> axum::response::Response {
        Self::into_response(self).map(axum::body::Body::from)
    }
}
