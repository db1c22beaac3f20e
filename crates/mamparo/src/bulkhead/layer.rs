//! Settings and shared state of a bulkhead.

use std::sync::Arc;
use std::time::Duration;

use mamparo_core::clock;
use mamparo_core::http::Http;
use mamparo_core::shard::Spread;
use mamparo_core::{BoxError, CallContext, Dependency, Event, Observer, Rejection, Verdict, What};
use tower_layer::Layer;

use super::adaptive::{Governor, Started};
use super::handle::BulkheadHandle;
use super::partition::{ByContext, ByRequest};
use super::places::Places;
use super::{Bulkhead, BulkheadPolicy};

/// Bounds how many calls run at once; see the [module](super).
///
/// `P` is the protocol: [`Http`], [`Plain`](mamparo_core::Plain), or one of your own. `T` finds the tenant of a request,
/// where the policy has [`Partitions`](super::Partitions).
#[derive(Clone, Debug)]
pub struct BulkheadLayer<P, T = ByContext> {
    shared: Spread<Shared<P>>,
    tenants: T,
}

/// What all services and calls of a layer share.
#[derive(Clone, Debug)]
pub(super) struct Shared<P> {
    pub(super) policy: BulkheadPolicy,
    pub(super) protocol: P,
    pub(super) places: Arc<Places>,
    pub(super) adaptive: Option<Arc<Governor>>,
    dependency: Dependency,
    observer: Option<Arc<dyn Observer>>,
}

impl<P> Shared<P> {
    /// The dependency's name: this layer's own, or else the operation's.
    pub(super) fn name(&self) -> Dependency {
        if self.dependency.is_unnamed() {
            CallContext::current().dependency()
        } else {
            self.dependency
        }
    }

    /// Reports a rejection, and makes it the call's error.
    #[cold]
    pub(super) fn reject(&self, rejection: Rejection) -> BoxError {
        self.report(What::Rejected(&rejection));
        rejection.into()
    }

    /// Notes how long a call has waited, and for which limit, for whoever records it.
    #[inline]
    pub(super) fn note(&self, waited: Duration) {
        let limit = self.places.occupancy().limit();
        CallContext::note_queue(self.dependency, waited, Some(limit));
    }

    /// Says that a call has waited and now has its place.
    #[cold]
    pub(super) fn report_wait(&self, waited: Duration) {
        self.note(waited);
        let limit = self.places.occupancy().limit();
        self.report(What::QueueWaited { waited, limit });
    }

    /// Tells when a call begins, for an adaptive limit.
    #[inline]
    pub(super) fn started(&self) -> Option<Started> {
        self.adaptive.as_ref().map(|governor| governor.start())
    }

    /// Lets an adaptive limit learn from a call; `besides` are in flight besides those that are counted.
    #[cold]
    pub(super) fn measure(&self, since: Started, verdict: Verdict, besides: usize) {
        let Some(governor) = &self.adaptive else {
            return;
        };
        let in_flight = self.places.occupancy().in_flight() + besides;
        let changed = governor.learn(&self.places, since, clock::now(), verdict, in_flight);
        if let Some((from, to)) = changed {
            self.places.serve();
            self.report(What::LimitChanged { from, to });
        }
    }

    fn report(&self, what: What<'_>) {
        if self.observer.is_some() {
            let context = CallContext::current_for(self.dependency);
            Event::report(self.observer.as_ref(), &context, what);
        }
    }
}

impl BulkheadLayer<Http> {
    /// Bounds HTTP calls, the response's body included.
    #[must_use]
    pub fn http(policy: BulkheadPolicy) -> Self {
        Self::new(policy, Http::default())
    }
}

impl<P: Clone> BulkheadLayer<P> {
    /// Bounds calls of a protocol.
    #[must_use]
    pub fn new(policy: BulkheadPolicy, protocol: P) -> Self {
        let partitions = policy.partitions().cloned();
        Self {
            shared: Spread::new(Shared {
                places: Arc::new(Places::new(
                    policy.limit(),
                    policy.max_waiting(),
                    partitions,
                )),
                adaptive: policy
                    .adaptive()
                    .map(|adaptive| Arc::new(Governor::new(adaptive.clone(), policy.limit()))),
                policy,
                protocol,
                dependency: Dependency::UNNAMED,
                observer: None,
            }),
            tenants: ByContext,
        }
    }
}

impl<P: Clone, T> BulkheadLayer<P, T> {
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

    pub(crate) fn policy(&self) -> &BulkheadPolicy {
        &self.shared.policy
    }

    /// The same places by other settings: who holds one or waits for one stays, for all that share them.
    ///
    /// A limit that did not change stays as it is, which may be as an operator or its own adaption has set it; shares of
    /// tenants and an adaptive limit are those that the layer was made with.
    pub(crate) fn with_policy(mut self, policy: &BulkheadPolicy) -> Self {
        let Shared {
            policy: old,
            places,
            adaptive,
            ..
        } = &*self.shared;
        if old.limit() != policy.limit() {
            match adaptive {
                Some(governor) => governor.restart(places, policy.limit()),
                None => places.set_limit(policy.limit()),
            }
            places.serve();
        }
        places.set_max_waiting(policy.max_waiting());
        let policy = policy.clone().shared_as(old);
        self.shared.change(|shared| shared.policy = policy);
        self
    }

    pub(crate) fn judged_by(mut self, protocol: P) -> Self {
        self.shared.change(|shared| shared.protocol = protocol);
        self
    }

    /// Finds the tenant in the request, by a function `Fn(&Req) -> Option<Tenant>`, instead of in the call's context.
    #[must_use]
    pub fn tenant_by<F>(self, tenant: F) -> BulkheadLayer<P, ByRequest<F>> {
        BulkheadLayer {
            shared: self.shared,
            tenants: ByRequest(tenant),
        }
    }

    /// Returns a handle that reads the bulkhead and resizes it.
    #[must_use]
    pub fn handle(&self) -> BulkheadHandle {
        BulkheadHandle::new(
            Arc::clone(&self.shared.places),
            self.shared.adaptive.clone(),
        )
    }
}

impl<S, P: Clone, T: Clone> Layer<S> for BulkheadLayer<P, T> {
    type Service = Bulkhead<S, P, T>;

    fn layer(&self, inner: S) -> Bulkhead<S, P, T> {
        Bulkhead::new(inner, self.shared.clone(), self.tenants.clone())
    }
}
