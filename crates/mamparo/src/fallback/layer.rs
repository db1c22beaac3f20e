//! Settings and shared state of a fallback.

use std::sync::Arc;

use mamparo_core::http::Http;
use mamparo_core::shard::Spread;
use mamparo_core::{Dependency, Observer};
use tower_layer::Layer;

use super::places::Places;
use super::{Fallback, FallbackPolicy};

/// Gives an operation that failed another answer; see the [module](super).
///
/// `P` is the protocol: [`Http`], [`Plain`](mamparo_core::Plain), or one of your own. `F` is what stands in: one of
/// [`value`](super::value), [`from_fn`](super::from_fn), [`from_async_fn`](super::from_async_fn) and
/// [`service`](super::service), or a [`Substitute`](super::Substitute) of your own.
#[derive(Debug)]
pub struct FallbackLayer<P, F> {
    shared: Spread<Shared<P, F>>,
}

/// What all services of a layer share.
#[derive(Debug)]
pub(super) struct Shared<P, F> {
    pub(super) policy: FallbackPolicy,
    pub(super) protocol: Arc<P>,
    pub(super) substitute: Arc<F>,
    pub(super) dependency: Dependency,
    pub(super) observer: Option<Arc<dyn Observer>>,
    pub(super) places: Option<Places>,
}

impl<F> FallbackLayer<Http, F> {
    /// Falls back from HTTP answers that the default table of statuses finds failed.
    #[must_use]
    pub fn http(policy: FallbackPolicy, substitute: F) -> Self {
        Self::new(policy, Http::default(), substitute)
    }
}

impl<P, F> FallbackLayer<P, F> {
    /// Falls back from failures of a protocol.
    #[must_use]
    pub fn new(policy: FallbackPolicy, protocol: P, substitute: F) -> Self {
        Self {
            shared: Spread::new(Shared {
                places: policy.settings.max_concurrent.map(Places::new),
                policy,
                protocol: Arc::new(protocol),
                substitute: Arc::new(substitute),
                dependency: Dependency::UNNAMED,
                observer: None,
            }),
        }
    }

    /// Names the dependency; needed where no layer around this one does.
    #[must_use]
    pub fn dependency(mut self, dependency: impl Into<Dependency>) -> Self {
        let dependency = dependency.into();
        self.shared.change(|shared| shared.dependency = dependency);
        self
    }

    /// Reports what happens to an observer.
    #[must_use]
    pub fn observer(self, observer: Arc<dyn Observer>) -> Self {
        self.observed(Some(observer))
    }

    pub(crate) fn observed(mut self, observer: Option<Arc<dyn Observer>>) -> Self {
        self.shared.change(|shared| shared.observer = observer);
        self
    }

    pub(crate) fn judged_by(mut self, protocol: P) -> Self {
        let protocol = Arc::new(protocol);
        self.shared.change(|shared| shared.protocol = protocol);
        self
    }
}

impl<S, P, F> Layer<S> for FallbackLayer<P, F> {
    type Service = Fallback<S, P, F>;

    fn layer(&self, inner: S) -> Fallback<S, P, F> {
        Fallback::new(inner, self.shared.clone())
    }
}

// By hand: protocol and substitute are shared, and need not be `Clone`.
impl<P, F> Clone for FallbackLayer<P, F> {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
        }
    }
}

impl<P, F> Clone for Shared<P, F> {
    fn clone(&self) -> Self {
        Self {
            policy: self.policy.clone(),
            protocol: Arc::clone(&self.protocol),
            substitute: Arc::clone(&self.substitute),
            dependency: self.dependency,
            observer: self.observer.clone(),
            places: self.places.clone(),
        }
    }
}
