//! Settings and shared state.

use std::sync::Arc;

use mamparo_core::{Dependency, grpc::Grpc, http::Http};
use opentelemetry::metrics::MeterProvider;
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::{Tracer, TracerProvider};
use tower_layer::Layer;

use super::rpc::GrpcSend;
use super::send::HttpSend;
use crate::exchange::{Exchange, Shared};

/// Records physical sends: see the [module's text](super).
#[derive(Clone, Debug)]
pub struct AttemptLayer<P = Http, R = HttpSend> {
    shared: Arc<Shared<P, R>>,
}

impl AttemptLayer<Http> {
    /// Records sends to that dependency, judged by the default table.
    ///
    /// ```
    /// # use mamparo_telemetry::AttemptLayer;
    /// let layer = AttemptLayer::http("catalog");
    /// ```
    #[must_use]
    pub fn http(dependency: impl Into<Dependency>) -> Self {
        Self::new(dependency, Http::default())
    }
}

impl<P> AttemptLayer<P> {
    /// Records sends over HTTP, judged by `classifier`: the same as the retry's, so that both say the same.
    #[must_use]
    pub fn new(dependency: impl Into<Dependency>, classifier: P) -> Self {
        Self::recording(dependency, classifier, HttpSend::default())
    }
}

impl AttemptLayer<Grpc, GrpcSend> {
    /// Records attempts of RPCs to that dependency.
    ///
    /// ```
    /// # use mamparo_telemetry::AttemptLayer;
    /// let layer = AttemptLayer::grpc("catalog");
    /// ```
    #[must_use]
    pub fn grpc(dependency: impl Into<Dependency>) -> Self {
        Self::grpc_with(dependency, Grpc)
    }
}

impl<P> AttemptLayer<P, GrpcSend> {
    /// Records attempts of RPCs, judged by `classifier`: the same as the retry's, so that both say the same.
    #[must_use]
    pub fn grpc_with(dependency: impl Into<Dependency>, classifier: P) -> Self {
        Self::recording(dependency, classifier, GrpcSend::default())
    }
}

impl<P: Clone> AttemptLayer<P, GrpcSend> {
    /// Names the server, where requests do not: tonic's channel adds it further in.
    ///
    /// ```
    /// # use mamparo_telemetry::AttemptLayer;
    /// let layer = AttemptLayer::grpc("catalog").server("catalog.internal", 50051);
    /// ```
    #[must_use]
    pub fn server(mut self, address: &str, port: u16) -> Self {
        let role = &mut Arc::make_mut(&mut self.shared).role;
        role.target.tell(address, port);
        self
    }
}

impl<P, R> AttemptLayer<P, R> {
    fn recording(dependency: impl Into<Dependency>, classifier: P, role: R) -> Self {
        Self {
            shared: Arc::new(Shared::new(classifier, role, dependency.into())),
        }
    }
}

impl<P: Clone, R: Clone> AttemptLayer<P, R> {
    /// Makes the spans with this provider instead of the global one.
    #[must_use]
    pub fn tracer_provider<T>(mut self, provider: &impl TracerProvider<Tracer = T>) -> Self
    where
        T: Tracer<Span: Send + Sync + 'static> + Send + Sync + 'static,
    {
        Arc::make_mut(&mut self.shared).trace_with(provider);
        self
    }

    /// Measures with this provider instead of the global one.
    #[must_use]
    pub fn meter_provider(mut self, provider: &dyn MeterProvider) -> Self {
        Arc::make_mut(&mut self.shared).measure_with(provider);
        self
    }

    /// Offers the sampler every attempt, also below a span that it has refused.
    ///
    /// For a sampler that goes by what an attempt is, not by the span above: it sees all attributes.
    ///
    /// ```
    /// # use mamparo_telemetry::AttemptLayer;
    /// let layer = AttemptLayer::http("catalog").offer_all();
    /// ```
    #[must_use]
    pub fn offer_all(mut self) -> Self {
        Arc::make_mut(&mut self.shared).spans.offer_all();
        self
    }

    /// Writes the span's identity with this propagator.
    ///
    /// Without it: W3C Trace Context, or the global propagator where one is set that does more than that.
    #[must_use]
    pub fn propagator(
        mut self,
        propagator: impl TextMapPropagator + Send + Sync + 'static,
    ) -> Self {
        Arc::make_mut(&mut self.shared).propagate_with(propagator);
        self
    }
}

impl<S, P, R> Layer<S> for AttemptLayer<P, R> {
    type Service = Exchange<S, P, R>;

    fn layer(&self, inner: S) -> Self::Service {
        Exchange::new(inner, Arc::clone(&self.shared))
    }
}
