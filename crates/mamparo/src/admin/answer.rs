//! How answers are written: JSON, text, and problems (RFC 9457).

use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::header::{
    CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderName, HeaderValue, StatusCode};
use serde::Serialize;
use serde_json::json;

/// An answer that is no success, in words of our own.
#[derive(Debug)]
pub(super) struct Problem {
    status: StatusCode,
    detail: &'static str,
    header: Option<(HeaderName, HeaderValue)>,
}

impl Problem {
    pub(super) const fn new(status: StatusCode, detail: &'static str) -> Self {
        Self {
            status,
            detail,
            header: None,
        }
    }

    /// Asks for the token; `error` where one was sent (RFC 6750 §3.1).
    pub(super) const fn unauthorized(detail: &'static str, challenge: &'static str) -> Self {
        Self {
            status: StatusCode::UNAUTHORIZED,
            detail,
            header: Some((WWW_AUTHENTICATE, HeaderValue::from_static(challenge))),
        }
    }

    /// Says when to come back.
    pub(super) fn after(self, wait: Duration) -> Self {
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        Self {
            header: Some((RETRY_AFTER, seconds.max(1).into())),
            ..self
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let problem = json!({
            "type": "about:blank",
            "title": self.status.canonical_reason().unwrap_or("Error"),
            "status": self.status.as_u16(),
            "detail": self.detail,
        });
        let mut response = with(self.status, "application/problem+json", problem.to_string());
        if let Some((name, value)) = self.header {
            response.headers_mut().insert(name, value);
        }
        response
    }
}

/// Answers with JSON.
pub(super) fn written(status: StatusCode, value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(json) => with(status, "application/json", json),
        Err(_) => {
            let status = StatusCode::INTERNAL_SERVER_ERROR;
            Problem::new(status, "what there is can't be written").into_response()
        }
    }
}

/// Answers with a body of that type: of this instant, and so for no cache.
pub(super) fn with(status: StatusCode, kind: &'static str, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
