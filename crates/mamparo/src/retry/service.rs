//! The wiring of a retry.

use std::fmt;
use std::task::{Context, Poll};

use mamparo_core::shard::Spread;
use mamparo_core::{BoxError, CallContext, Cause, Classify, LayerKind, Scope};
use tower_service::Service;

use super::layer::Made;
use super::{Answer, RetryFuture};
use crate::replay::Replay;

/// Sends failed requests again; see the [module](super).
pub struct Retry<S, P> {
    inner: S,
    calls: Calls<S, P>,
}

/// Makes the calls, through an instance of the inner service that whoever holds this holds too.
pub(crate) struct Calls<S, P> {
    made: Spread<Made<S, P>>,
}

impl<S, P> Retry<S, P> {
    pub(super) const fn new(inner: S, calls: Calls<S, P>) -> Self {
        Self { inner, calls }
    }
}

impl<S, P> Calls<S, P> {
    pub(super) const fn new(made: Spread<Made<S, P>>) -> Self {
        Self { made }
    }

    /// Makes a call through an instance that was polled ready.
    #[inline]
    pub(crate) fn call<Req>(&self, inner: &mut S, request: Req) -> RetryFuture<S, P, Req>
    where
        P: Replay<Req> + Classify<S::Response> + Answer<S::Response> + Clone,
        S: Service<P::Wire> + Clone,
        S::Error: Into<BoxError>,
    {
        let shared = &self.made.shared;
        let mut scope = Scope::join(LayerKind::Retry, shared.dependency);
        let protocol = &shared.protocol;
        let plan = shared.plan(&request, &mut scope);
        let allowance = plan.allowance;
        if shared.observer.is_some() {
            scope.set_started(CallContext::now());
        }
        if scope.is_inside_retry() || scope.upstream_attempt() > 1 {
            shared.report_nested(&scope);
        }
        let resends =
            allowance.attempts > 1 || (protocol.is_transparent() && !allowance.owned_outside);
        let keep = resends.then_some(shared.policy.settings.max_body);
        let (wire, held) = protocol.split(request, keep);
        // What stands inside and waits where another attempt may follow hears that none does.
        let most = held.as_ref().map_or(1, |_| allowance.attempts);
        scope.set_attempt(1, most, Cause::Original);
        let sends_before = scope.sends();
        // The instance that was polled ready makes the first attempt; those to come wait for a readiness of their own.
        let entered = scope.entered();
        let future = inner.call(wire);
        drop(entered);
        RetryFuture::new(future, held, scope, (plan, sends_before), self.made.hold())
    }
}

impl<S, P, Req> Service<Req> for Retry<S, P>
where
    P: Replay<Req> + Classify<S::Response> + Answer<S::Response> + Clone,
    S: Service<P::Wire> + Clone,
    S::Error: Into<BoxError>,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = RetryFuture<S, P, Req>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    #[inline]
    fn call(&mut self, request: Req) -> Self::Future {
        self.calls.call(&mut self.inner, request)
    }
}

impl<S: Clone, P> Clone for Retry<S, P> {
    fn clone(&self) -> Self {
        Self::new(self.inner.clone(), self.calls.clone())
    }
}

impl<S, P> Clone for Calls<S, P> {
    fn clone(&self) -> Self {
        Self::new(self.made.clone())
    }
}

impl<S, P> fmt::Debug for Calls<S, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Retry")
    }
}

impl<S: fmt::Debug, P> fmt::Debug for Retry<S, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retry")
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}
