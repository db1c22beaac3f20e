//! The one owner of resends: a retry, or a hedge in its place.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use mamparo_core::{Answer, BoxError, Budget, Classify, Dependency, Observer};
use tower_service::Service;

use crate::grpc::{self, ServiceConfig};
use crate::hedge::{self, HedgeFuture, HedgeLayer, HedgePolicy};
use crate::replay::Replay;
use crate::retry::{self, RetryFuture, RetryLayer, RetryPolicy};

/// Which of the two it is, and its settings.
#[derive(Clone, Debug)]
pub(super) enum Owner<P> {
    Retry(RetryPolicy),
    // Its state is shared by all services, so the layer is made once.
    Hedge(HedgeLayer<P>),
}

/// Who owns the resends of a method for which a service config says so, and of all others.
#[derive(Clone, Debug)]
pub(super) struct Owners<P> {
    pub(super) usual: Owner<P>,
    pub(super) config: Option<ServiceConfig>,
    /// The other of the two, where a service config may ask for it.
    other: Option<Box<Owner<P>>>,
}

impl<P: Clone> Owner<P> {
    pub(super) fn hedge(policy: HedgePolicy, protocol: P) -> Self {
        Self::Hedge(HedgeLayer::new(policy, protocol))
    }

    fn max_attempts(&self) -> u32 {
        match self {
            Self::Retry(policy) => policy.max_attempts(),
            Self::Hedge(layer) => layer.policy().max_attempts(),
        }
    }

    fn budget(&self) -> &Budget {
        match self {
            Self::Retry(policy) => policy.budget(),
            Self::Hedge(layer) => layer.policy().budget(),
        }
    }

    /// The other of the two, paid for by the same budget; none where the defaults were refused, which they are not.
    fn other(&self, protocol: &P) -> Option<Self> {
        let budget = self.budget().clone();
        match self {
            Self::Retry(_) => {
                let policy = HedgePolicy::builder().budget(budget).build().ok()?;
                Some(Self::hedge(policy, protocol.clone()))
            }
            Self::Hedge(_) => {
                let policy = RetryPolicy::builder().budget(budget).build().ok()?;
                Some(Self::Retry(policy))
            }
        }
    }

    /// What calls an inner service.
    fn around<S: Clone>(
        &self,
        service: &S,
        protocol: &P,
        of: &Of<'_>,
    ) -> Either<retry::Calls<S, P>, hedge::Calls<S, P>> {
        let config = of.config.cloned();
        match self {
            Self::Retry(policy) => {
                let layer = RetryLayer::new(policy.clone(), protocol.clone());
                let layer = layer.dependency(of.dependency).configured(config);
                Either::Retry(layer.observed(of.observer.cloned()).around(service))
            }
            Self::Hedge(layer) => {
                let layer = layer.clone().judged_by(protocol.clone());
                let layer = layer.dependency(of.dependency).configured(config);
                Either::Hedge(layer.observed(of.observer.cloned()).around(service))
            }
        }
    }
}

impl<P: Clone> Owner<P> {
    /// The same by other settings: the budget keeps its tokens, and a hedge what it has measured.
    fn updated(&self, settings: &Self, protocol: &P) -> Self {
        let budget = self.budget();
        match (self, settings) {
            (Self::Hedge(layer), Self::Hedge(settings)) => {
                return Self::Hedge(layer.clone().with_policy(settings.policy()));
            }
            _ => budget.retune(settings.budget()),
        }
        match settings {
            Self::Retry(policy) => Self::Retry(policy.clone().paid_by(budget.clone())),
            Self::Hedge(layer) => {
                let policy = layer.policy().clone().paid_by(budget.clone());
                Self::hedge(policy, protocol.clone())
            }
        }
    }
}

/// What both have of a stack.
struct Of<'a> {
    dependency: Dependency,
    observer: Option<&'a Arc<dyn Observer>>,
    config: Option<&'a ServiceConfig>,
}

impl<P: Clone> Owners<P> {
    pub(super) const fn only(usual: Owner<P>) -> Self {
        Self {
            usual,
            config: None,
            other: None,
        }
    }

    /// Replaces who usually owns them.
    pub(super) fn usually(self, usual: Owner<P>, protocol: &P) -> Self {
        Self { usual, ..self }.fitted(protocol)
    }

    /// The same by other settings of whoever usually owns them.
    pub(super) fn updated(&self, settings: &Self, protocol: &P) -> Self {
        Self {
            usual: self.usual.updated(&settings.usual, protocol),
            config: settings.config.clone(),
            other: None,
        }
        .fitted(protocol)
    }

    /// Lets a service config decide, method by method.
    pub(super) fn configured(mut self, config: ServiceConfig, protocol: &P) -> Self {
        self.config = Some(config);
        self.fitted(protocol)
    }

    /// Lets another service config decide, or none.
    pub(super) fn with_config(self, config: Option<ServiceConfig>, protocol: &P) -> Self {
        if config.is_none() && self.config.is_none() {
            return self;
        }
        Self { config, ..self }.fitted(protocol)
    }

    fn fitted(mut self, protocol: &P) -> Self {
        self.other = match &self.config {
            Some(_) => self.usual.other(protocol).map(Box::new),
            None => None,
        };
        self
    }

    pub(super) fn max_attempts(&self) -> u32 {
        let planned = self.config.as_ref().and_then(ServiceConfig::max_attempts);
        self.usual.max_attempts().max(planned.unwrap_or(1))
    }

    /// The longest time that all waits between attempts can take together.
    pub(super) fn worst_case_wait(&self) -> Duration {
        let usually = match &self.usual {
            Owner::Retry(policy) => policy.worst_case_wait(),
            Owner::Hedge(_) => Duration::ZERO,
        };
        let planned = self.config.as_ref().map(ServiceConfig::worst_case_wait);
        usually.max(planned.unwrap_or_default())
    }

    pub(super) fn budget(&self) -> &Budget {
        self.usual.budget()
    }

    /// Puts the owner around a service.
    pub(super) fn around<S: Clone>(
        &self,
        service: S,
        protocol: P,
        dependency: Dependency,
        observer: Option<&Arc<dyn Observer>>,
    ) -> Resends<S, P> {
        let of = Of {
            dependency,
            observer,
            config: self.config.as_ref(),
        };
        let usual = self.usual.around(&service, &protocol, &of);
        let other = self.config.clone().zip(self.other.as_ref());
        let other = other.map(|(config, owner)| {
            let calls = owner.around(&service, &protocol, &of);
            Arc::new(Other {
                calls,
                config,
                protocol,
            })
        });
        Resends {
            inner: service,
            usual,
            other,
        }
    }
}

/// Resends what failed or is slow: as a retry or as a hedge, as the method's service config says, if there is one.
pub struct Resends<S, P> {
    inner: S,
    usual: Either<retry::Calls<S, P>, hedge::Calls<S, P>>,
    other: Option<Arc<Other<S, P>>>,
}

/// The one of the two that has only the methods that a service config gives it.
struct Other<S, P> {
    calls: Either<retry::Calls<S, P>, hedge::Calls<S, P>>,
    config: ServiceConfig,
    protocol: P,
}

#[derive(Clone, Debug)]
enum Either<R, H> {
    Retry(R),
    Hedge(H),
}

impl<S, P> Other<S, P> {
    fn owns<Req>(&self, request: &Req) -> bool
    where
        P: Replay<Req>,
    {
        let owner = (self.protocol.method(request)).and_then(|path| self.config.owner(path));
        match self.calls {
            Either::Retry(_) => owner == Some(grpc::Owner::Retry),
            Either::Hedge(_) => owner == Some(grpc::Owner::Hedge),
        }
    }
}

impl<S, P, Req> Service<Req> for Resends<S, P>
where
    P: Replay<Req> + Classify<S::Response> + Answer<S::Response> + Clone,
    S: Service<P::Wire> + Clone,
    S::Error: Into<BoxError>,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = ResendsFuture<S, P, Req>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    #[inline]
    fn call(&mut self, request: Req) -> Self::Future {
        let inner = &mut self.inner;
        let calls = match &self.other {
            Some(other) if other.owns(&request) => &other.calls,
            _ => &self.usual,
        };
        ResendsFuture(match calls {
            Either::Retry(retry) => State::Retry(Box::pin(retry.call(inner, request))),
            Either::Hedge(hedge) => State::Hedge(Box::pin(hedge.call(inner, request))),
        })
    }
}

/// The future of one operation, with all its attempts.
#[must_use = "futures do nothing unless polled"]
pub struct ResendsFuture<S, P, Req>(State<S, P, Req>)
where
    P: Replay<Req>,
    S: Service<P::Wire>;

/// Boxed: nine layers stand around it, and each would move it; that costs more than the one allocation.
enum State<S, P, Req>
where
    P: Replay<Req>,
    S: Service<P::Wire>,
{
    Retry(Pin<Box<RetryFuture<S, P, Req>>>),
    Hedge(Pin<Box<HedgeFuture<S, P, Req>>>),
}

impl<S, P, Req> Future for ResendsFuture<S, P, Req>
where
    P: Replay<Req> + Classify<S::Response> + Answer<S::Response>,
    S: Service<P::Wire> + Clone,
    S::Error: Into<BoxError>,
{
    type Output = Result<S::Response, BoxError>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.get_mut().0 {
            State::Retry(retry) => retry.as_mut().poll(cx),
            State::Hedge(hedge) => hedge.as_mut().poll(cx),
        }
    }
}

impl<S: Clone, P> Clone for Resends<S, P> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            usual: self.usual.clone(),
            other: self.other.clone(),
        }
    }
}

impl<S: fmt::Debug, P> fmt::Debug for Resends<S, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resends")
            .field("inner", &self.inner)
            .field("usual", &self.usual)
            .finish_non_exhaustive()
    }
}

impl<S, P, Req> fmt::Debug for ResendsFuture<S, P, Req>
where
    P: Replay<Req>,
    S: Service<P::Wire>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            State::Retry(retry) => retry.fmt(f),
            State::Hedge(hedge) => hedge.fmt(f),
        }
    }
}
