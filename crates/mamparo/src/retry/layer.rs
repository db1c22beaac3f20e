//! Settings and shared state of a retry.

use std::sync::Arc;

use mamparo_core::http::Http;
use mamparo_core::{CallContext, Dependency, Event, Observer, What};
use tower_layer::Layer;

use super::{Retry, RetryPolicy};

/// Sends failed requests again; see the [module](super).
///
/// `P` is the protocol: [`Http`], [`Plain`](mamparo_core::Plain), or one of your own.
#[derive(Clone, Debug)]
pub struct RetryLayer<P> {
    shared: Arc<Shared<P>>,
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
    pub(super) fn report_nested(&self, context: &CallContext) {
        let what = What::Nested {
            outer: CallContext::current().operation(),
            upstream_attempt: context.upstream_attempt(),
        };
        Event::report(self.observer.as_ref(), context, what);
    }
}

impl RetryLayer<Http> {
    /// Retries HTTP requests by the default table of statuses.
    #[must_use]
    pub fn http(policy: RetryPolicy) -> Self {
        Self::new(policy, Http::default())
    }
}

impl<P> RetryLayer<P> {
    /// Retries requests of a protocol.
    #[must_use]
    pub fn new(policy: RetryPolicy, protocol: P) -> Self {
        Self {
            shared: Arc::new(Shared {
                policy,
                protocol,
                dependency: Dependency::UNNAMED,
                observer: None,
            }),
        }
    }
}

impl<P: Clone> RetryLayer<P> {
    /// Names the dependency; needed where no layer around this one does.
    #[must_use]
    pub fn dependency(mut self, dependency: impl Into<Dependency>) -> Self {
        Arc::make_mut(&mut self.shared).dependency = dependency.into();
        self
    }

    /// Reports what happens to an observer.
    #[must_use]
    pub fn observer(self, observer: Arc<dyn Observer>) -> Self {
        self.observed(Some(observer))
    }

    pub(crate) fn observed(mut self, observer: Option<Arc<dyn Observer>>) -> Self {
        Arc::make_mut(&mut self.shared).observer = observer;
        self
    }
}

impl<S, P> Layer<S> for RetryLayer<P> {
    type Service = Retry<S, P>;

    fn layer(&self, inner: S) -> Retry<S, P> {
        Retry::new(inner, Arc::clone(&self.shared))
    }
}
