//! Settings and shared state of a hedge.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mamparo_core::budget::Throttle;
use mamparo_core::clock::{self, Instant};
use mamparo_core::grpc::Grpc;
use mamparo_core::http::Http;
use mamparo_core::shard::Spread;
use mamparo_core::{CallContext, Dependency, Event, Observer, Scope, What};
use tower_layer::Layer;

use super::latency::Latency;
use super::service::Calls;
use super::{Hedge, HedgePolicy, state};
use crate::grpc::{MethodConfig, MethodId, ServiceConfig};
use crate::replay::Replay;

/// Sends a slow request a second time, and takes the better answer; see the [module](super).
///
/// `P` is the protocol: [`Http`], [`Grpc`], [`Plain`](mamparo_core::Plain), or one of your own.
#[derive(Debug)]
pub struct HedgeLayer<P> {
    shared: Spread<Shared<P>>,
}

/// What all services of a layer share.
#[derive(Debug)]
pub(super) struct Shared<P> {
    pub(super) policy: HedgePolicy,
    pub(super) protocol: Arc<P>,
    pub(super) dependency: Dependency,
    pub(super) observer: Option<Arc<dyn Observer>>,
    /// None where the delay is fixed.
    pub(super) latency: Option<Arc<Latency>>,
    pub(super) config: Option<ServiceConfig>,
}

impl<P> Shared<P> {
    /// What the service config says of a method.
    pub(super) fn method(&self, method: Option<MethodId>) -> Option<&MethodConfig> {
        self.config.as_ref()?.get(method?)
    }

    /// The method that a request calls, if the service config says something of it.
    #[inline]
    pub(super) fn find<Req>(&self, request: &Req) -> Option<MethodId>
    where
        P: Replay<Req>,
    {
        self.config.as_ref()?.find(self.protocol.method(request)?)
    }

    pub(super) fn throttle(&self) -> Option<&Throttle> {
        self.config.as_ref()?.throttle()
    }

    /// The delay before the next hedge of a method.
    pub(super) fn delay(&self, method: Option<MethodId>, now: Instant) -> Duration {
        if let Some(plan) = state::plan(self.method(method)) {
            return plan.delay();
        }
        let percentile = self.latency.as_ref().and_then(|latency| latency.delay(now));
        percentile.unwrap_or(self.policy.settings.delay)
    }

    /// Says that this hedge is not the only owner of resends around its dependency.
    #[cold]
    pub(super) fn report_nested(&self, scope: &Scope) {
        let what = What::Nested {
            outer: CallContext::current().operation(),
            upstream_attempt: scope.upstream_attempt(),
        };
        Event::report(self.observer.as_ref(), &scope.context(), what);
    }
}

impl HedgeLayer<Http> {
    /// Hedges HTTP requests, and judges answers by the default table of statuses.
    #[must_use]
    pub fn http(policy: HedgePolicy) -> Self {
        Self::new(policy, Http::default())
    }
}

impl HedgeLayer<Grpc> {
    /// Hedges gRPC requests as gRPC does (gRFC A6): those of methods for which a
    /// [`service_config`](Self::service_config) has a `hedgingPolicy`.
    ///
    /// Of any other method, gRPC assumes that it is not idempotent: unless the policy says `idempotent_only(false)`, its
    /// requests are sent once.
    #[must_use]
    pub fn grpc(policy: HedgePolicy) -> Self {
        Self::new(policy, Grpc)
    }
}

impl<P> HedgeLayer<P> {
    /// Hedges requests of a protocol.
    #[must_use]
    pub fn new(policy: HedgePolicy, protocol: P) -> Self {
        Self {
            shared: Spread::new(Shared {
                latency: latency(&policy),
                policy,
                protocol: Arc::new(protocol),
                dependency: Dependency::UNNAMED,
                observer: None,
                config: None,
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

    /// Obeys a gRPC service config: it may say per method whether and how a request is hedged.
    ///
    /// What it says of a method goes before the policy's attempts and delay; the policy's budget and its bounds of time
    /// hold all the same, and its cap on extra load does not. A method that is retried there is not hedged here. Protocols
    /// other than gRPC have no methods, and obey only its throttle.
    #[must_use]
    pub fn service_config(self, config: &ServiceConfig) -> Self {
        self.configured(Some(config.clone()))
    }

    /// What calls an inner service that someone else holds.
    pub(crate) fn around<S: Clone>(&self, inner: &S) -> Calls<S, P> {
        Calls::new(Spread::new(Made {
            shared: Shared::clone(&self.shared),
            spare: Arc::new(Mutex::new(inner.clone())),
        }))
    }

    pub(crate) fn configured(mut self, config: Option<ServiceConfig>) -> Self {
        self.shared.change(|shared| shared.config = config);
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

    /// The same hedge by other settings: its budgets keep their tokens, and its window what it holds unless it has another
    /// shape.
    pub(crate) fn with_policy(mut self, policy: &HedgePolicy) -> Self {
        let old = &self.shared.policy;
        let latency = match policy.settings.measures_as(&old.settings) {
            true => self.shared.latency.clone(),
            false => latency(policy),
        };
        let policy = policy.clone().paid_as(old);
        self.shared.change(|shared| {
            shared.policy = policy;
            shared.latency = latency;
        });
        self
    }

    pub(crate) fn policy(&self) -> &HedgePolicy {
        &self.shared.policy
    }

    pub(crate) fn judged_by(mut self, protocol: P) -> Self {
        let protocol = Arc::new(protocol);
        self.shared.change(|shared| shared.protocol = protocol);
        self
    }
}

impl<S: Clone, P> Layer<S> for HedgeLayer<P> {
    type Service = Hedge<S, P>;

    fn layer(&self, inner: S) -> Hedge<S, P> {
        let calls = self.around(&inner);
        Hedge::new(inner, calls)
    }
}

fn latency(policy: &HedgePolicy) -> Option<Arc<Latency>> {
    let share = policy.settings.percentile?;
    let latency = Latency::new(&policy.settings, share, clock::now());
    Some(Arc::new(latency))
}

/// What the calls of a service need, and those of its clones.
pub(super) struct Made<S, P> {
    pub(super) shared: Shared<P>,
    /// Cloned when a hedge is due: a clone for each call would cost more than the layer.
    spare: Arc<Mutex<S>>,
}

impl<S: Clone, P> Made<S, P> {
    /// Returns another instance of the inner service, which is not ready.
    #[cold]
    pub(super) fn another(&self) -> S {
        let spare = self.spare.lock();
        spare.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

// By hand: protocol and inner service are shared, and are not cloned here.
impl<S, P> Clone for Made<S, P> {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
            spare: Arc::clone(&self.spare),
        }
    }
}

impl<P> Clone for HedgeLayer<P> {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
        }
    }
}

impl<P> Clone for Shared<P> {
    fn clone(&self) -> Self {
        Self {
            policy: self.policy.clone(),
            protocol: Arc::clone(&self.protocol),
            dependency: self.dependency,
            observer: self.observer.clone(),
            latency: self.latency.clone(),
            config: self.config.clone(),
        }
    }
}
