//! Settings and shared state.

use std::sync::Arc;

use mamparo_core::{Dependency, http::Http};
use opentelemetry::metrics::MeterProvider;
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::{Tracer, TracerProvider};
use tower_layer::Layer;

use super::service::Attempt;
use crate::http::{Propagation, Servers};
use crate::source::{Meters, Pulse, Spans};

/// Records physical sends over HTTP: see the [module's text](super).
#[derive(Clone, Debug)]
pub struct AttemptLayer<P = Http> {
    shared: Arc<Shared<P>>,
}

/// What all services of one layer share.
#[derive(Clone, Debug)]
pub(super) struct Shared<P> {
    pub(super) classifier: P,
    pub(super) dependency: Dependency,
    pub(super) spans: Spans,
    pub(super) meters: Meters,
    /// When to ask for what is not known yet.
    pub(super) pulse: Pulse,
    pub(super) propagation: Propagation,
    pub(super) servers: Servers,
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
        Self {
            shared: Arc::new(Shared {
                classifier,
                dependency: dependency.into(),
                spans: Spans::global(),
                meters: Meters::global(),
                pulse: Pulse::new(),
                propagation: Propagation::global(),
                servers: Servers::default(),
            }),
        }
    }
}

impl<P: Clone> AttemptLayer<P> {
    /// Makes the spans with this provider instead of the global one.
    #[must_use]
    pub fn tracer_provider<T>(mut self, provider: &impl TracerProvider<Tracer = T>) -> Self
    where
        T: Tracer<Span: Send + Sync + 'static> + Send + Sync + 'static,
    {
        Arc::make_mut(&mut self.shared).spans.give(provider);
        self
    }

    /// Measures with this provider instead of the global one.
    #[must_use]
    pub fn meter_provider(mut self, provider: &dyn MeterProvider) -> Self {
        Arc::make_mut(&mut self.shared).meters = Meters::given(provider);
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
        let propagation = Propagation::Given(Arc::new(propagator));
        Arc::make_mut(&mut self.shared).propagation = propagation;
        self
    }
}

impl<S, P> Layer<S> for AttemptLayer<P> {
    type Service = Attempt<S, P>;

    fn layer(&self, inner: S) -> Self::Service {
        Attempt::new(inner, Arc::clone(&self.shared))
    }
}
