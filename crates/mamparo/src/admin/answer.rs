//! How answers are written: JSON, text, and problems (RFC 9457).

use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde::Serialize;

use crate::problem::Problem;

/// An answer that is no success, in words of our own; like all answers here for no cache.
#[derive(Debug)]
pub(super) struct Refusal {
    problem: Problem,
    /// Which token is asked for (RFC 6750 §3).
    challenge: Option<&'static str>,
}

impl Refusal {
    pub(super) fn new(status: StatusCode, detail: &'static str) -> Self {
        Self {
            problem: Problem::blank(status).with_detail(detail),
            challenge: None,
        }
    }

    /// Asks for the token; `error` where one was sent (RFC 6750 §3.1).
    pub(super) fn unauthorized(detail: &'static str, challenge: &'static str) -> Self {
        Self {
            challenge: Some(challenge),
            ..Self::new(StatusCode::UNAUTHORIZED, detail)
        }
    }

    /// Says when to come back.
    pub(super) fn after(mut self, wait: Duration) -> Self {
        self.problem = self.problem.with_retry_after(wait);
        self
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = self.problem.answer(0.0, true).map(Body::from);
        let headers = response.headers_mut();
        if let Some(challenge) = self.challenge {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
        }
        uncached(headers);
        response
    }
}

/// Answers with JSON.
pub(super) fn written(status: StatusCode, value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(json) => with(status, "application/json", json),
        Err(_) => {
            let status = StatusCode::INTERNAL_SERVER_ERROR;
            Refusal::new(status, "what there is can't be written").into_response()
        }
    }
}

/// Answers with a body of that type: of this instant, and so for no cache.
pub(super) fn with(status: StatusCode, kind: &'static str, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    uncached(headers);
    response
}

fn uncached(headers: &mut HeaderMap) {
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
}
