//! Settings and shared state of a retry.

use std::sync::{Arc, Mutex, PoisonError};

use mamparo_core::grpc::Grpc;
use mamparo_core::http::Http;
use mamparo_core::shard::Spread;
use mamparo_core::{CallContext, Dependency, Event, Observer, Scope, What};
use tower_layer::Layer;

use super::operation::Plan;
use super::service::Calls;
use super::state::allowance;
use super::{Retry, RetryPolicy};
use crate::grpc::{Owner, ServiceConfig};
use crate::replay::Replay;
use crate::resend::bound_attempts;

/// Sends failed requests again; see the [module](super).
///
/// `P` is the protocol: [`Http`], [`Grpc`], [`Plain`](mamparo_core::Plain), or one of your own.
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
    pub(super) config: Option<ServiceConfig>,
}

impl<P> Shared<P> {
    /// What is known of a request before it is called; its method's timeout, if it has one, bounds the attempts.
    #[inline]
    pub(super) fn plan<Req>(&self, request: &Req, scope: &mut Scope) -> Plan
    where
        P: Replay<Req>,
    {
        let safety = self.protocol.safety(request);
        let inside_retry = scope.is_inside_retry();
        let found = self.config.as_ref().and_then(|config| {
            let method = config.find(self.protocol.method(request)?)?;
            Some((method, config.get(method)?))
        });
        let Some((method, said)) = found else {
            return Plan {
                safety,
                allowance: allowance(&self.policy, None, inside_retry),
                method: None,
            };
        };
        if let Some(timeout) = said.timeout() {
            bound_attempts(scope, timeout);
        }
        Plan {
            safety: said
                .listed_for(Owner::Retry)
                .map_or(safety, |codes| safety.with_plan(codes)),
            allowance: allowance(&self.policy, Some(said), inside_retry),
            method: Some(method),
        }
    }

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

impl RetryLayer<Grpc> {
    /// Retries gRPC requests as gRPC does (gRFC A6), whose methods list `UNAVAILABLE` unless a
    /// [`service_config`](Self::service_config) says otherwise.
    ///
    /// - A head without a status commits the call: what its trailers say is the caller's.
    /// - A server's pushback is obeyed to the millisecond, or ends the retries.
    /// - What was never processed is sent once more at once, as the same attempt and free of charge.
    #[must_use]
    pub fn grpc(policy: RetryPolicy) -> Self {
        Self::new(policy, Grpc)
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
                config: None,
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

    /// Obeys a gRPC service config: it may say per method how often and when a request is sent again.
    ///
    /// What it says of a method goes before the policy's attempts and backoff; the policy's budget and other bounds hold all
    /// the same, and what it says nothing of has the policy. A method that is hedged there is not retried here. Protocols
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
}

impl<S: Clone, P: Clone> Layer<S> for RetryLayer<P> {
    type Service = Retry<S, P>;

    fn layer(&self, inner: S) -> Retry<S, P> {
        let calls = self.around(&inner);
        Retry::new(inner, calls)
    }
}
