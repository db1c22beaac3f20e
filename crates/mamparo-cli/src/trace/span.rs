//! Reading a span.

use std::fmt::{self, Display};
use std::time::{Duration, SystemTime};

use mamparo_telemetry::semconv::{
    HTTP_REQUEST_RESEND_COUNT, HTTP_RESPONSE_STATUS_CODE, OPERATION_OUTCOME, PREVIOUS_RPC_ATTEMPTS,
    RPC_STATUS_CODE,
};
use opentelemetry::Value;
use opentelemetry::trace::SpanKind;
use opentelemetry_sdk::trace::SpanData;
use serde::Serialize;

/// Returns an attribute that is text.
pub(crate) fn text<'a>(span: &'a SpanData, key: &str) -> Option<&'a str> {
    match value(span, key)? {
        Value::String(text) => Some(text.as_str()),
        _ => None,
    }
}

/// Tells whether a span is one of an operation: all of its attempts together.
pub(crate) fn is_operation(span: &SpanData) -> bool {
    text(span, OPERATION_OUTCOME).is_some()
}

/// Tells whether a span is one of a physical send: over HTTP the only client span there is, over gRPC below one.
pub(crate) fn is_attempt(span: &SpanData) -> bool {
    let rpc = number(span, PREVIOUS_RPC_ATTEMPTS).is_some();
    rpc || (span.span_kind == SpanKind::Client && !is_operation(span))
}

/// Returns how many sends of the same operation came before this one; none before the first.
pub(crate) fn resend_count(span: &SpanData) -> Option<i64> {
    let count = number(span, HTTP_REQUEST_RESEND_COUNT).or(number(span, PREVIOUS_RPC_ATTEMPTS));
    count.filter(|count| *count > 0)
}

/// Returns the number of an attempt: 1 for the original.
pub(crate) fn attempt(span: &SpanData) -> i64 {
    resend_count(span).unwrap_or(0) + 1
}

/// The status of an answer: HTTP's number, gRPC's name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(crate) enum Status {
    Http(i64),
    Rpc(String),
}

/// Returns the status that an answer had.
pub(crate) fn status(span: &SpanData) -> Option<Status> {
    let rpc = || text(span, RPC_STATUS_CODE).map(|name| Status::Rpc(name.to_owned()));
    number(span, HTTP_RESPONSE_STATUS_CODE)
        .map(Status::Http)
        .or_else(rpc)
}

impl Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http(code) => Display::fmt(code, f),
            Self::Rpc(name) => f.write_str(name),
        }
    }
}

/// Returns an attribute that is an integer.
pub(crate) fn number(span: &SpanData, key: &str) -> Option<i64> {
    match value(span, key)? {
        Value::I64(number) => Some(*number),
        _ => None,
    }
}

fn value<'a>(span: &'a SpanData, key: &str) -> Option<&'a Value> {
    let found = span.attributes.iter().find(|a| a.key.as_str() == key);
    found.map(|attribute| &attribute.value)
}

/// Returns how long after `start` it was; zero where the wall clock was set back in between.
pub(crate) fn since(start: SystemTime, at: SystemTime) -> Duration {
    at.duration_since(start).unwrap_or_default()
}

/// Returns milliseconds, to the microsecond.
pub(crate) fn ms(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}
