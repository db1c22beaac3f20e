//! Settings and shared state.

use std::sync::Arc;

use mamparo_core::{Dependency, http::Http};
use opentelemetry::metrics::MeterProvider;
use opentelemetry::trace::{Tracer, TracerProvider};
use tower_layer::Layer;

use super::guard::span_name;
use super::service::Operation;
use crate::source::{Meters, Pulse, Spans};

/// Records operations: see the [module's text](super).
#[derive(Clone, Debug)]
pub struct OperationLayer<P> {
    shared: Arc<Shared<P>>,
}

/// What all services of one layer share.
#[derive(Clone, Debug)]
pub(super) struct Shared<P> {
    pub(super) classifier: P,
    pub(super) dependency: Dependency,
    pub(super) span_name: &'static str,
    pub(super) spans: Spans,
    pub(super) meters: Meters,
    /// When to ask for what is not known yet.
    pub(super) pulse: Pulse,
}

impl OperationLayer<Http> {
    /// Records operations over HTTP, judged by the default table.
    ///
    /// ```
    /// # use mamparo_telemetry::OperationLayer;
    /// let layer = OperationLayer::http("catalog");
    /// ```
    #[must_use]
    pub fn http(dependency: impl Into<Dependency>) -> Self {
        Self::new(dependency, Http::default())
    }
}

impl<P> OperationLayer<P> {
    /// Records operations of any protocol, judged by `classifier`.
    #[must_use]
    pub fn new(dependency: impl Into<Dependency>, classifier: P) -> Self {
        let dependency = dependency.into();
        Self {
            shared: Arc::new(Shared {
                classifier,
                dependency,
                span_name: span_name(dependency),
                spans: Spans::global(),
                meters: Meters::global(),
                pulse: Pulse::new(),
            }),
        }
    }
}

impl<P: Clone> OperationLayer<P> {
    /// Makes the spans with this provider instead of the global one.
    #[must_use]
    pub fn tracer_provider<T>(mut self, provider: &impl TracerProvider<Tracer = T>) -> Self
    where
        T: Tracer<Span: Send + Sync + 'static> + Send + Sync + 'static,
    {
        Arc::make_mut(&mut self.shared).spans.give(provider);
        self
    }

    /// Offers the sampler every operation, also below a span that it has refused.
    ///
    /// For a sampler that goes by what an operation is, not by the span above: it sees all attributes.
    #[must_use]
    pub fn offer_all(mut self) -> Self {
        Arc::make_mut(&mut self.shared).spans.offer_all();
        self
    }

    /// Counts with this provider instead of the global one.
    #[must_use]
    pub fn meter_provider(mut self, provider: &dyn MeterProvider) -> Self {
        Arc::make_mut(&mut self.shared).meters = Meters::given(provider);
        self
    }
}

impl<S, P> Layer<S> for OperationLayer<P> {
    type Service = Operation<S, P>;

    fn layer(&self, inner: S) -> Self::Service {
        Operation::new(inner, Arc::clone(&self.shared))
    }
}
