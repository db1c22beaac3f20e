//! Settings and shared state of a retry.

use std::sync::{Arc, Mutex, PoisonError};

use mamparo_core::http::Http;
use mamparo_core::shard::Spread;
use mamparo_core::{CallContext, Dependency, Event, Observer, Scope, What};
use tower_layer::Layer;

use super::{Retry, RetryPolicy};

/// Sends failed requests again; see the [module](super).
///
/// `P` is the protocol: [`Http`], [`Plain`](mamparo_core::Plain), or one of your own.
#[derive(Clone, Debug)]
pub struct RetryLayer<P> {
    shared: Spread<Shared<P>>,
}

/// What all services of a layer share.
#[derive(Clone, Debug)]
pub(super) struct Shared<P> {
    pub(super) policy: RetryPolicy,
    pub(super) protocol: P,
    pub(super) dependency: Dependency,
    pub(super) observer: Option<Arc<dyn Observer>>,
}

impl<P> Shared<P> {
    /// Says that this retry is not the only one around its dependency.
    #[cold]
    pub(super) fn report_nested(&self, scope: &Scope) {
        let what = What::Nested {
            outer: CallContext::current().operation(),
            upstream_attempt: scope.upstream_attempt(),
        };
        Event::report(self.observer.as_ref(), &scope.context(), what);
    }
}

/// What the calls of a service need, and those of its clones.
pub(super) struct Made<S, P> {
    pub(super) shared: Shared<P>,
    /// Cloned when a first attempt has failed: a clone for each call would cost more than the layer.
    spare: Arc<Mutex<S>>,
}

impl<S: Clone, P> Made<S, P> {
    /// Returns another instance of the inner service.
    #[cold]
    pub(super) fn another(&self) -> S {
        let spare = self.spare.lock();
        spare.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

// Not derived: that would ask the inner service to be cloned here.
impl<S, P: Clone> Clone for Made<S, P> {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
            spare: Arc::clone(&self.spare),
        }
    }
}

impl RetryLayer<Http> {
    /// Retries HTTP requests by the default table of statuses.
    #[must_use]
    pub fn http(policy: RetryPolicy) -> Self {
        Self::new(policy, Http::default())
    }
}

impl<P: Clone> RetryLayer<P> {
    /// Retries requests of a protocol.
    #[must_use]
    pub fn new(policy: RetryPolicy, protocol: P) -> Self {
        Self {
            shared: Spread::new(Shared {
                policy,
                protocol,
                dependency: Dependency::UNNAMED,
                observer: None,
            }),
        }
    }

    /// Names the dependency; needed where no layer around this one does.
    #[must_use]
    pub fn dependency(mut self, dependency: impl Into<Dependency>) -> Self {
        self.shared
            .change(|shared| shared.dependency = dependency.into());
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
}

impl<S: Clone, P: Clone> Layer<S> for RetryLayer<P> {
    type Service = Retry<S, P>;

    fn layer(&self, inner: S) -> Retry<S, P> {
        let made = Spread::new(Made {
            shared: Shared::clone(&self.shared),
            spare: Arc::new(Mutex::new(inner.clone())),
        });
        Retry::new(inner, made)
    }
}
