//! gRPC's own metrics of retries (gRFC A96): one record per call, and none of a 0.

use mamparo_core::context::Resends;
use opentelemetry::metrics::{Histogram, Meter};

use super::Attributes;
use super::catalog;
use super::metric::Metric;
use crate::http::Server;
use crate::semconv::{DURATION_BOUNDARIES, GRPC_METHOD, GRPC_TARGET};

/// Where the buckets of counts end.
const COUNT_BOUNDARIES: [f64; 5] = [1.0, 2.0, 3.0, 4.0, 5.0];

/// Where the buckets of transparent retries end: no policy bounds these.
const TRANSPARENT_BOUNDARIES: [f64; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 10.0];

#[derive(Debug)]
pub(super) struct Retries {
    retries: Histogram<u64>,
    transparent_retries: Histogram<u64>,
    hedges: Histogram<u64>,
    retry_delay: Histogram<f64>,
}

/// What such a call is broken down by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallOfMethod<'a> {
    pub(crate) method: &'static str,
    pub(crate) server: Option<&'a Server>,
}

impl Retries {
    pub(super) fn new(meter: &Meter) -> Self {
        let counts = |metric: Metric, boundaries: &[f64]| {
            let histogram = meter.u64_histogram(metric.name);
            histogram
                .with_unit(metric.unit)
                .with_description(metric.says)
                .with_boundaries(boundaries.to_vec())
                .build()
        };
        let retry_delay = meter.f64_histogram(catalog::GRPC_RETRY_DELAY.name);
        Self {
            retries: counts(catalog::GRPC_RETRIES, &COUNT_BOUNDARIES),
            transparent_retries: counts(catalog::GRPC_TRANSPARENT_RETRIES, &TRANSPARENT_BOUNDARIES),
            hedges: counts(catalog::GRPC_HEDGES, &COUNT_BOUNDARIES),
            retry_delay: retry_delay
                .with_unit(catalog::GRPC_RETRY_DELAY.unit)
                .with_description(catalog::GRPC_RETRY_DELAY.says)
                .with_boundaries(DURATION_BOUNDARIES.to_vec())
                .build(),
        }
    }

    pub(super) fn count(&self, call: &CallOfMethod<'_>, resends: Resends) {
        let mut attributes = Attributes::<2>::new().with(GRPC_METHOD, call.method);
        if let Some(server) = call.server {
            let port = server.port.map(|port| format!(":{port}"));
            let target = format!("{}{}", server.address, port.unwrap_or_default());
            attributes.push(GRPC_TARGET, target);
        }
        let attributes = attributes.as_slice();
        let counts = [
            (&self.retries, resends.retries),
            (&self.transparent_retries, resends.transparent_retries),
            (&self.hedges, resends.hedges),
        ];
        for (histogram, count) in counts {
            if count > 0 {
                histogram.record(u64::from(count), attributes);
            }
        }
        if !resends.pause().is_zero() {
            let seconds = resends.pause().as_secs_f64();
            self.retry_delay.record(seconds, attributes);
        }
    }
}
