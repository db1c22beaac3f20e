//! Reading a span.

use std::time::{Duration, SystemTime};

use opentelemetry::Value;
use opentelemetry_sdk::trace::SpanData;

/// Returns an attribute that is text.
pub(crate) fn text<'a>(span: &'a SpanData, key: &str) -> Option<&'a str> {
    match value(span, key)? {
        Value::String(text) => Some(text.as_str()),
        _ => None,
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
