//! The catalog's metrics, made with a meter.

use mamparo_core::Dependency;
use mamparo_core::context::Resends;
use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Histogram, Meter};

use super::catalog;
use super::labels::{AttemptLabels, OperationLabels, RpcLabels, ServedLabels};
use super::metric::Metric;
use super::pairs::Pairs;
use super::resends::{CallOfMethod, Retries};
use crate::semconv::{ATTEMPT_VERDICT, DEPENDENCY, DURATION_BOUNDARIES};

#[derive(Debug)]
pub(crate) struct Instruments {
    meter: Meter,
    pub(crate) operations: Pairs<OperationLabels>,
    pub(crate) resent_operations: Counter<u64>,
    pub(crate) recovered_operations: Counter<u64>,
    pub(crate) attempts: Pairs<AttemptLabels>,
    /// The same counter, for attempts that no duration is written of.
    attempts_only: Counter<u64>,
    pub(crate) rpcs: Pairs<RpcLabels>,
    pub(crate) served: Pairs<ServedLabels>,
    pub(crate) served_rpcs: Pairs<RpcLabels>,
    retries: Retries,
    pub(crate) resends: Counter<u64>,
    pub(crate) refused_resends: Counter<u64>,
    pub(crate) rejections: Counter<u64>,
    pub(crate) late_work: Histogram<f64>,
    pub(crate) deadline_remaining: Histogram<f64>,
    pub(crate) doubted_deadlines: Counter<u64>,
    pub(crate) nested_retries: Counter<u64>,
    pub(crate) shadow_rejections: Counter<u64>,
    pub(crate) breaker_transitions: Counter<u64>,
    pub(crate) bulkhead_wait: Histogram<f64>,
    pub(crate) rate_limit_wait: Histogram<f64>,
    pub(crate) rate_limit_pauses: Counter<u64>,
    pub(crate) hedges: Counter<u64>,
    pub(crate) won_hedges: Counter<u64>,
    pub(crate) refused_hedges: Counter<u64>,
    pub(crate) fallbacks: Counter<u64>,
    pub(crate) shed_calls: Counter<u64>,
    pub(crate) idempotency_keys: Counter<u64>,
    pub(crate) injected_faults: Counter<u64>,
    pub(crate) policy_reloads: Counter<u64>,
    #[cfg(feature = "durable")]
    pub(crate) deferred: crate::durable::Counts,
    #[cfg(feature = "durable")]
    pub(crate) published: crate::durable::Published,
}

impl Instruments {
    pub(crate) fn new(meter: &Meter) -> Self {
        let counter = |metric: Metric| {
            let counter = meter.u64_counter(metric.name);
            counter
                .with_unit(metric.unit)
                .with_description(metric.says)
                .build()
        };
        let duration = |metric: Metric| {
            let histogram = meter.f64_histogram(metric.name);
            histogram
                .with_unit(metric.unit)
                .with_description(metric.says)
                .with_boundaries(DURATION_BOUNDARIES.to_vec())
                .build()
        };
        Self {
            operations: Pairs::new(
                duration(catalog::OPERATION_DURATION),
                Some(counter(catalog::OPERATIONS)),
            ),
            resent_operations: counter(catalog::RESENT_OPERATIONS),
            recovered_operations: counter(catalog::RECOVERED_OPERATIONS),
            attempts: Pairs::new(
                duration(catalog::REQUEST_DURATION),
                Some(counter(catalog::ATTEMPTS)),
            ),
            attempts_only: counter(catalog::ATTEMPTS),
            rpcs: Pairs::new(duration(catalog::RPC_DURATION), None),
            served: Pairs::new(duration(catalog::SERVED_DURATION), None),
            served_rpcs: Pairs::new(duration(catalog::SERVED_RPC_DURATION), None),
            retries: Retries::new(meter),
            resends: counter(catalog::RESENDS),
            refused_resends: counter(catalog::REFUSED_RESENDS),
            rejections: counter(catalog::REJECTIONS),
            late_work: duration(catalog::LATE_WORK),
            deadline_remaining: duration(catalog::DEADLINE_REMAINING),
            doubted_deadlines: counter(catalog::DOUBTED_DEADLINES),
            nested_retries: counter(catalog::NESTED_RETRIES),
            shadow_rejections: counter(catalog::SHADOW_REJECTIONS),
            breaker_transitions: counter(catalog::BREAKER_TRANSITIONS),
            bulkhead_wait: duration(catalog::BULKHEAD_WAIT),
            rate_limit_wait: duration(catalog::RATE_LIMIT_WAIT),
            rate_limit_pauses: counter(catalog::RATE_LIMIT_PAUSES),
            hedges: counter(catalog::HEDGES),
            won_hedges: counter(catalog::WON_HEDGES),
            refused_hedges: counter(catalog::REFUSED_HEDGES),
            fallbacks: counter(catalog::FALLBACKS),
            shed_calls: counter(catalog::SHED_CALLS),
            idempotency_keys: counter(catalog::IDEMPOTENCY_KEYS),
            injected_faults: counter(catalog::INJECTED_FAULTS),
            policy_reloads: counter(catalog::POLICY_RELOADS),
            #[cfg(feature = "durable")]
            deferred: crate::durable::Counts::new(meter),
            #[cfg(feature = "durable")]
            published: crate::durable::Published::new(meter),
            meter: meter.clone(),
        }
    }

    /// Counts an attempt, whose duration is part of its RPC's.
    pub(crate) fn count_attempt(&self, dependency: Dependency, verdict: &'static str) {
        let attributes = [
            KeyValue::new(DEPENDENCY, dependency.as_str()),
            KeyValue::new(ATTEMPT_VERDICT, verdict),
        ];
        self.attempts_only.add(1, &attributes);
    }

    /// Writes gRPC's own metrics of retries.
    pub(crate) fn count_resends(&self, call: &CallOfMethod<'_>, resends: Resends) {
        self.retries.count(call, resends);
    }

    /// Returns the meter that they were made with.
    pub(super) const fn meter(&self) -> &Meter {
        &self.meter
    }
}
