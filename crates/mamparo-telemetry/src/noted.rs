//! What the protecting layers have noted of a call, in the words of spans.

use std::time::Duration;

use mamparo_core::CallContext;
use opentelemetry::{KeyValue, Value};

use crate::semconv::{BREAKER_DECISION, BREAKER_STATE, QUEUE_LIMIT, QUEUE_WAIT, RATE_LIMIT_WAIT};

/// As many attributes as [`noted`] gives at most.
pub(crate) const NOTED: usize = 5;

/// The attributes of what was noted; none for a layer that is not there.
pub(crate) fn noted(context: &CallContext) -> impl Iterator<Item = KeyValue> + use<> {
    let (state, decision) = context.breaker().unzip();
    let limit = context.limit_in_force().map(whole);
    let list = [
        state.map(|state| KeyValue::new(BREAKER_STATE, state.as_str())),
        decision.map(|decision| KeyValue::new(BREAKER_DECISION, decision.as_str())),
        context
            .queue_wait()
            .map(|wait| KeyValue::new(QUEUE_WAIT, seconds(wait))),
        limit.map(|limit| KeyValue::new(QUEUE_LIMIT, limit)),
        context
            .rate_limit_wait()
            .map(|wait| KeyValue::new(RATE_LIMIT_WAIT, seconds(wait))),
    ];
    list.into_iter().flatten()
}

fn seconds(duration: Duration) -> Value {
    Value::F64(duration.as_secs_f64())
}

fn whole(count: usize) -> Value {
    Value::I64(i64::try_from(count).unwrap_or(i64::MAX))
}
