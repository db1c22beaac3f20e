//! The span that a transaction began in, kept with it.

use mamparo_durable::engine::Transaction;
use opentelemetry::Context;
use opentelemetry::trace::{SpanContext, TraceContextExt, TraceState};

use crate::http::{read_parent, traceparent};

/// Keeps the current span's identity with a transaction, as a `traceparent` (W3C Trace Context level 2, §3.2), for its attempts to link.
///
/// Without a current span the transaction is as it was.
pub fn traced(transaction: Transaction) -> Transaction {
    let current = Context::map_current(|current| current.span().span_context().clone());
    if !current.is_valid() {
        return transaction;
    }
    let text = traceparent(&current);
    match std::str::from_utf8(&text) {
        Ok(text) => transaction.trace(text),
        Err(_) => transaction,
    }
}

/// Reads what was kept; none where it is no `traceparent`.
pub(super) fn kept(traceparent: &str) -> Option<SpanContext> {
    let (trace, span, flags) = read_parent(traceparent.as_bytes())?;
    Some(SpanContext::new(trace, span, flags, true, TraceState::NONE))
}
