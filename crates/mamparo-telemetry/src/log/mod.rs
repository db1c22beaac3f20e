//! What the layers report, as structured `tracing` records.
//!
//! [`TracingObserver`] is an [`Observer`](mamparo_core::Observer): give it to every layer of a stack. It writes
//! to the target [`TARGET`]; a filter such as `mamparo=info` turns it up or down.
//!
//! | level | what |
//! |---|---|
//! | `WARN` | an operation failed for good: one record, whatever led to it. A breaker opens |
//! | `WARN` | a malformed deadline header; an unknown error answered |
//! | `INFO` | a resend is scheduled, a hedge sent, a fallback asked. A breaker recovers |
//! | `INFO` | a deadline clamped or not believed, late work, a retry inside a retry |
//! | `DEBUG` | an attempt ended, an operation ended, a key was added, a call waited; a rejection that a retry around it answers |
//!
//! A request that was itself at fault (a 404, say) is for its caller to report: `DEBUG` as well.
//!
//! Fields, each where it is known: `dependency`, `operation_id` and `idempotency_key_hash` (16 hexadecimal
//! digits; the key itself is never written), `attempt_number`, `max_total_attempts`, `outcome`,
//! `rpc_status_code` (such as `UNAVAILABLE`), `retry_reason`,
//! `retryable`, `not_resent_reason`, `backoff_ms`, `remaining_deadline_ms`, `attempt_timeout_ms`,
//! `elapsed_total_ms`, `late_ms`, `breaker_state`, `breaker_decision`, `breaker_cause`, `breaker_key`,
//! `queue_wait_ms`, `rate_limit_wait_ms`, `limit_in_force`, `priority`, `fallback`, `error`. Numbers are `i64`: an
//! exporter that meets a `u64` may write it as text.
//!
//! ```
//! use std::sync::Arc;
//!
//! use mamparo_core::{CallContext, Event, Observer, What};
//! use mamparo_telemetry::TracingObserver;
//!
//! let observer: Arc<dyn Observer> = Arc::new(TracingObserver);
//! Event::report(Some(&observer), &CallContext::EMPTY, What::SkewSuspected);
//! ```

mod observer;
mod record;

pub use observer::{TARGET, TracingObserver};

#[cfg(test)]
mod tests;
