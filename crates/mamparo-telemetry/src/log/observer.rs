//! Writing the records.

use mamparo_core::{Event, Observer};
use tracing::Level;

use super::record::{Record, level};

/// The target of every record.
pub const TARGET: &str = "mamparo";

/// Writes what layers report as `tracing` records; see the [module](super).
#[derive(Clone, Copy, Debug, Default)]
pub struct TracingObserver;

/// The level of a record must be a constant, so there is one call site per level.
macro_rules! write {
    ($level:expr, $event:expr) => {
        if tracing::enabled!(target: TARGET, $level) {
            let record = Record::of($event.context, &$event.what);
            tracing::event!(
                target: TARGET,
                $level,
                dependency = record.dependency,
                operation_id = record.operation_id.map(display),
                idempotency_key_hash = record.idempotency_key_hash.map(display),
                attempt_number = record.attempt_number,
                max_total_attempts = record.max_total_attempts,
                outcome = record.outcome,
                rpc_status_code = record.rpc_status_code,
                retry_reason = record.retry_reason,
                retryable = record.retryable,
                not_resent_reason = record.not_resent_reason,
                backoff_ms = record.backoff_ms,
                remaining_deadline_ms = record.remaining_deadline_ms,
                attempt_timeout_ms = record.attempt_timeout_ms,
                elapsed_total_ms = record.elapsed_total_ms,
                late_ms = record.late_ms,
                breaker_state = record.breaker_state,
                breaker_decision = record.breaker_decision,
                breaker_cause = record.breaker_cause,
                breaker_key = record.breaker_key,
                queue_wait_ms = record.queue_wait_ms,
                rate_limit_wait_ms = record.rate_limit_wait_ms,
                limit_in_force = record.limit_in_force,
                priority = record.priority,
                fallback = record.fallback,
                error = record.error.map(display),
                "{}",
                record.message,
            );
        }
    };
}

impl Observer for TracingObserver {
    fn on(&self, event: &Event<'_>) {
        match level(event.context, &event.what) {
            Level::WARN => write!(Level::WARN, event),
            Level::INFO => write!(Level::INFO, event),
            _ => write!(Level::DEBUG, event),
        }
    }
}
