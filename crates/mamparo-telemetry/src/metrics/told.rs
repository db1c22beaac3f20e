//! What an operation's span is told.

use std::time::Duration;

use mamparo_core::{Kind, What};
use opentelemetry::trace::{SpanRef, TraceContextExt};
use opentelemetry::{Context, KeyValue, Value};

use crate::semconv::{FALLBACK_OUTCOME, REASON_DELAY};

/// Tells the span that is current what has happened: the operation's, since retries, hedges and fallbacks run inside it.
pub(super) fn tell(what: &What<'_>) {
    match *what {
        What::ResendScheduled {
            reason,
            wait,
            remaining,
            ..
        } => to_span(|span| {
            let mut attributes = Vec::with_capacity(3);
            attributes.push(KeyValue::new("reason", reason.as_str()));
            attributes.push(KeyValue::new("backoff_ms", millis(wait)));
            let remaining = remaining.map(millis);
            attributes.extend(remaining.map(|ms| KeyValue::new("remaining_deadline_ms", ms)));
            span.add_event("retry scheduled", attributes);
        }),
        What::SentTransparently { reason } => to_span(|span| {
            let reason = KeyValue::new("reason", reason.as_str());
            span.add_event("sent again transparently", vec![reason]);
        }),
        What::HedgeSent { reason, delay, .. } => to_span(|span| {
            let reason = reason.map_or(REASON_DELAY, Kind::as_str);
            let attributes = vec![
                KeyValue::new("reason", reason),
                KeyValue::new("delay_ms", millis(delay)),
            ];
            span.add_event("hedge sent", attributes);
        }),
        What::Key { hash, step, .. } => to_span(|span| {
            let mut attributes = vec![KeyValue::new("outcome", step.as_str())];
            let hash = hash.map(|hash| format!("{hash:016x}"));
            attributes.extend(hash.map(|hash| KeyValue::new("idempotency_key_hash", hash)));
            span.add_event("idempotency key", attributes);
        }),
        What::FellBack { ended, .. } => to_span(|span| {
            span.set_attribute(KeyValue::new(FALLBACK_OUTCOME, ended.as_str()));
        }),
        _ => {}
    }
}

#[cold]
fn to_span(tell: impl FnOnce(SpanRef<'_>)) {
    Context::map_current(|context| {
        let span = context.span();
        if span.is_recording() {
            tell(span);
        }
    });
}

fn millis(duration: Duration) -> Value {
    Value::I64(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX))
}
