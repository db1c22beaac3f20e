//! What all services of one layer share.

use std::sync::Arc;

use mamparo_core::Dependency;
use opentelemetry::metrics::MeterProvider;
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::{Tracer, TracerProvider};

use crate::http::Propagation;
use crate::source::{Meters, Pulse, Spans};

/// The settings of a layer, and what it has found.
#[derive(Clone, Debug)]
pub(crate) struct Shared<P, R> {
    pub(crate) classifier: P,
    pub(crate) role: R,
    pub(crate) dependency: Dependency,
    pub(crate) spans: Spans,
    pub(crate) meters: Meters,
    /// When to ask for what is not known yet.
    pub(crate) pulse: Pulse,
    pub(crate) propagation: Propagation,
}

impl<P, R> Shared<P, R> {
    pub(crate) fn new(classifier: P, role: R, dependency: Dependency) -> Self {
        Self {
            classifier,
            role,
            dependency,
            spans: Spans::global(),
            meters: Meters::global(),
            pulse: Pulse::new(),
            propagation: Propagation::global(),
        }
    }

    pub(crate) fn trace_with<T>(&mut self, provider: &impl TracerProvider<Tracer = T>)
    where
        T: Tracer<Span: Send + Sync + 'static> + Send + Sync + 'static,
    {
        self.spans.give(provider);
    }

    pub(crate) fn measure_with(&mut self, provider: &dyn MeterProvider) {
        self.meters = Meters::given(provider);
    }

    pub(crate) fn propagate_with(
        &mut self,
        propagator: impl TextMapPropagator + Send + Sync + 'static,
    ) {
        self.propagation = Propagation::Given(Arc::new(propagator));
    }
}
