//! Settings and shared state.

use std::sync::Arc;

use http::Extensions;
use mamparo_core::{Dependency, grpc::Grpc, http::Http};
use opentelemetry::metrics::MeterProvider;
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::{Tracer, TracerProvider};
use tower_layer::Layer;

use super::request::HttpServed;
use super::rpc::GrpcServed;
use crate::exchange::{Exchange, Shared};

/// Records calls that are served: see the [module's text](super).
#[derive(Clone, Debug)]
pub struct ServerCallLayer<P, R> {
    shared: Arc<Shared<P, R>>,
}

impl ServerCallLayer<Grpc, GrpcServed> {
    /// Records RPCs.
    ///
    /// ```
    /// # use mamparo_telemetry::ServerCallLayer;
    /// let layer = ServerCallLayer::grpc();
    /// ```
    #[must_use]
    pub fn grpc() -> Self {
        Self::recording(Grpc, GrpcServed::default())
    }

    /// Names the methods that there are: any other is `_OTHER`.
    ///
    /// Without it a method is known once something has answered that is not tonic's fallback for unknown ones, up to
    /// [`MAX_NAMES`](crate::MAX_NAMES) of them.
    ///
    /// ```
    /// # use mamparo_telemetry::ServerCallLayer;
    /// let layer = ServerCallLayer::grpc().methods(["shop.Catalog/Find", "shop.Catalog/List"]);
    /// ```
    #[must_use]
    pub fn methods<'m>(mut self, methods: impl IntoIterator<Item = &'m str>) -> Self {
        Arc::make_mut(&mut self.shared).role.know(methods);
        self
    }
}

impl ServerCallLayer<Http, HttpServed> {
    /// Records HTTP requests.
    ///
    /// ```
    /// # use mamparo_telemetry::ServerCallLayer;
    /// let layer = ServerCallLayer::http();
    /// ```
    #[must_use]
    pub fn http() -> Self {
        Self::recording(Http::default(), HttpServed::default())
    }

    /// Says how to find the route that a request has matched: a template such as `/items/{id}`, never a path.
    ///
    /// At most [`MAX_NAMES`](crate::MAX_NAMES) are told apart.
    ///
    /// ```
    /// # use mamparo_telemetry::ServerCallLayer;
    /// # struct MatchedPath(String);
    /// # impl MatchedPath { fn as_str(&self) -> &str { &self.0 } }
    /// // With axum's `MatchedPath`, on a layer that its router was given:
    /// let layer = ServerCallLayer::http()
    ///     .route(|extensions| extensions.get::<MatchedPath>().map(MatchedPath::as_str));
    /// ```
    #[must_use]
    pub fn route(
        mut self,
        find: impl for<'a> Fn(&'a Extensions) -> Option<&'a str> + Send + Sync + 'static,
    ) -> Self {
        Arc::make_mut(&mut self.shared).role.routes(find);
        self
    }
}

impl<P, R> ServerCallLayer<P, R> {
    fn recording(classifier: P, role: R) -> Self {
        Self {
            shared: Arc::new(Shared::new(classifier, role, Dependency::UNNAMED)),
        }
    }
}

impl<P: Clone, R: Clone> ServerCallLayer<P, R> {
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

    /// Reads the caller's identity with this propagator.
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

impl<S, P, R> Layer<S> for ServerCallLayer<P, R> {
    type Service = Exchange<S, P, R>;

    fn layer(&self, inner: S) -> Self::Service {
        Exchange::new(inner, Arc::clone(&self.shared))
    }
}
