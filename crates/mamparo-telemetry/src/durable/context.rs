//! The span that a transaction began in, kept with it.

use mamparo_durable::engine::Transaction;
use mamparo_durable::machine::Label;
use opentelemetry::Context;
use opentelemetry::trace::{SpanContext, TraceContextExt, TraceState};

use crate::http::{read_parent, traceparent as written};

/// Keeps the current span's identity with a transaction, as a [`traceparent`], for its attempts to link.
///
/// Without a current span the transaction is as it was.
pub fn traced(transaction: Transaction) -> Transaction {
    match traceparent() {
        Some(traceparent) => transaction.trace(traceparent),
        None => transaction,
    }
}

/// Writes the current span's identity as a `traceparent` (W3C Trace Context level 2, §3.2): what a deferred request is to keep, by
/// [`DeferAs::trace`](mamparo_durable::defer::DeferAs::trace).
///
/// `None` without a current span.
///
/// ```
/// use mamparo_durable::defer::DeferAs;
/// use mamparo_telemetry::durable::traceparent;
///
/// let mut charge = http::Request::post("http://psp/charges").body("5 EUR")?;
/// if let Some(traceparent) = traceparent() {
///     charge.extensions_mut().insert(DeferAs::new().trace(traceparent));
/// }
/// # Ok::<(), http::Error>(())
/// ```
#[must_use]
pub fn traceparent() -> Option<Label> {
    let current = Context::map_current(|current| current.span().span_context().clone());
    let text = current.is_valid().then(|| written(&current))?;
    Some(std::str::from_utf8(&text).ok()?.into())
}

/// Tells whether a text is a `traceparent` that attempts can link.
///
/// ```
/// use mamparo_telemetry::durable::is_traceparent;
///
/// assert!(is_traceparent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"));
/// assert!(!is_traceparent("00-00000000000000000000000000000000-00f067aa0ba902b7-01"));
/// ```
#[must_use]
pub fn is_traceparent(text: &str) -> bool {
    read_parent(text.as_bytes()).is_some()
}

/// Reads what was kept; none where it is no `traceparent`.
pub(crate) fn kept(traceparent: &str) -> Option<SpanContext> {
    let (trace, span, flags) = read_parent(traceparent.as_bytes())?;
    Some(SpanContext::new(trace, span, flags, true, TraceState::NONE))
}
