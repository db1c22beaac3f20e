//! Settings and shared state.

use std::sync::Arc;

use mamparo_core::{Dependency, grpc::Grpc, http::Http};
use opentelemetry::metrics::MeterProvider;
use opentelemetry::trace::{Tracer, TracerProvider};
use tower_layer::Layer;

use super::role::{AnyCall, GrpcCall};
use super::service::Operation;
use crate::source::{Meters, Pulse, Spans};

/// Records operations: see the [module's text](super).
#[derive(Clone, Debug)]
pub struct OperationLayer<P, R = AnyCall> {
    shared: Arc<Shared<P, R>>,
}

/// What all services of one layer share.
#[derive(Clone, Debug)]
pub(super) struct Shared<P, R> {
    pub(super) classifier: P,
    pub(super) dependency: Dependency,
    pub(super) role: R,
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
        Self::recording(dependency, classifier, AnyCall::to(dependency))
    }
}

impl OperationLayer<Grpc, GrpcCall> {
    /// Records RPCs.
    ///
    /// ```
    /// # use mamparo_telemetry::OperationLayer;
    /// let layer = OperationLayer::grpc("catalog");
    /// ```
    #[must_use]
    pub fn grpc(dependency: impl Into<Dependency>) -> Self {
        Self::grpc_with(dependency, Grpc)
    }
}

impl<P> OperationLayer<P, GrpcCall> {
    /// Records RPCs, judged by `classifier`.
    #[must_use]
    pub fn grpc_with(dependency: impl Into<Dependency>, classifier: P) -> Self {
        Self::recording(dependency.into(), classifier, GrpcCall::default())
    }
}

impl<P: Clone> OperationLayer<P, GrpcCall> {
    /// Names the server, where requests do not: tonic's channel adds it further in.
    ///
    /// ```
    /// # use mamparo_telemetry::OperationLayer;
    /// let layer = OperationLayer::grpc("catalog").server("catalog.internal", 50051);
    /// ```
    #[must_use]
    pub fn server(mut self, address: &str, port: u16) -> Self {
        let role = &mut Arc::make_mut(&mut self.shared).role;
        role.target.tell(address, port);
        self
    }

    /// Also writes gRPC's own metrics of retries, such as `grpc.client.call.retries` (gRFC A96).
    ///
    /// They are experimental, and off by default.
    #[must_use]
    pub fn retry_metrics(mut self) -> Self {
        Arc::make_mut(&mut self.shared).role.counts_retries = true;
        self
    }
}

impl<P, R> OperationLayer<P, R> {
    fn recording(dependency: Dependency, classifier: P, role: R) -> Self {
        Self {
            shared: Arc::new(Shared {
                classifier,
                dependency,
                role,
                spans: Spans::global(),
                meters: Meters::global(),
                pulse: Pulse::new(),
            }),
        }
    }
}

impl<P: Clone, R: Clone> OperationLayer<P, R> {
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

impl<S, P, R> Layer<S> for OperationLayer<P, R> {
    type Service = Operation<S, P, R>;

    fn layer(&self, inner: S) -> Self::Service {
        Operation::new(inner, Arc::clone(&self.shared))
    }
}
