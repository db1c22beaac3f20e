//! The one owner of resends: a retry, or a hedge in its place.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use mamparo_core::{Answer, BoxError, Budget, Classify, Dependency, Observer};
use tower_layer::Layer;
use tower_service::Service;

use crate::hedge::{Hedge, HedgeFuture, HedgeLayer, HedgePolicy};
use crate::replay::Replay;
use crate::retry::{Retry, RetryFuture, RetryLayer, RetryPolicy};

/// Which of the two it is, and its settings.
#[derive(Clone, Debug)]
pub(super) enum Owner<P> {
    Retry(RetryPolicy),
    // Its state is shared by all services, so the layer is made once.
    Hedge(HedgeLayer<P>),
}

impl<P> Owner<P> {
    pub(super) fn hedge(policy: HedgePolicy, protocol: P) -> Self {
        Self::Hedge(HedgeLayer::new(policy, protocol))
    }

    pub(super) fn max_attempts(&self) -> u32 {
        match self {
            Self::Retry(policy) => policy.max_attempts(),
            Self::Hedge(layer) => layer.policy().max_attempts(),
        }
    }

    pub(super) fn budget(&self) -> &Budget {
        match self {
            Self::Retry(policy) => policy.budget(),
            Self::Hedge(layer) => layer.policy().budget(),
        }
    }

    /// Puts the owner around a service.
    pub(super) fn around<S: Clone>(
        &self,
        service: S,
        protocol: P,
        dependency: Dependency,
        observer: Option<Arc<dyn Observer>>,
    ) -> Resends<S, P>
    where
        P: Clone,
    {
        Resends(match self {
            Self::Retry(policy) => {
                let layer = RetryLayer::new(policy.clone(), protocol);
                let layer = layer.dependency(dependency).observed(observer);
                Either::Retry(layer.layer(service))
            }
            Self::Hedge(layer) => {
                let layer = layer.clone().judged_by(protocol);
                let layer = layer.dependency(dependency).observed(observer);
                Either::Hedge(layer.layer(service))
            }
        })
    }
}

/// Resends what failed or is slow: a [`Retry`] or a [`Hedge`].
pub struct Resends<S, P>(Either<Retry<S, P>, Hedge<S, P>>);

#[derive(Clone, Debug)]
enum Either<R, H> {
    Retry(R),
    Hedge(H),
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
        match &mut self.0 {
            Either::Retry(retry) => retry.poll_ready(cx),
            Either::Hedge(hedge) => hedge.poll_ready(cx),
        }
    }

    #[inline]
    fn call(&mut self, request: Req) -> Self::Future {
        ResendsFuture(match &mut self.0 {
            Either::Retry(retry) => State::Retry(Box::pin(retry.call(request))),
            Either::Hedge(hedge) => State::Hedge(Box::pin(hedge.call(request))),
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
        Self(self.0.clone())
    }
}

impl<S: fmt::Debug, P> fmt::Debug for Resends<S, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
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
