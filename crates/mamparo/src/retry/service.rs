//! The wiring of a retry.

use std::fmt;
use std::task::{Context, Poll};

use mamparo_core::shard::Spread;
use mamparo_core::{BoxError, CallContext, Cause, Classify, LayerKind, Scope};
use tower_service::Service;

use super::layer::Made;
use super::state::allowance;
use super::{Answer, RetryFuture};
use crate::replay::Replay;

/// Sends failed requests again; see the [module](super).
pub struct Retry<S, P> {
    inner: S,
    made: Spread<Made<S, P>>,
}

impl<S, P> Retry<S, P> {
    pub(super) const fn new(inner: S, made: Spread<Made<S, P>>) -> Self {
        Self { inner, made }
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
        let shared = &self.made.shared;
        let mut scope = Scope::join(LayerKind::Retry, shared.dependency);
        let allowance = allowance(&shared.policy, scope.is_inside_retry());
        scope.set_attempt(1, allowance.attempts, Cause::Original);
        if shared.observer.is_some() {
            scope.set_started(CallContext::now());
        }
        if scope.is_inside_retry() || scope.upstream_attempt() > 1 {
            shared.report_nested(&scope);
        }
        let safety = shared.protocol.safety(&request);
        let keep = (allowance.attempts > 1).then_some(shared.policy.settings.max_body);
        let (wire, held) = shared.protocol.split(request, keep);
        let sends_before = scope.sends();
        // The instance that was polled ready makes the first attempt; those to come wait for a readiness of their own.
        let entered = scope.entered();
        let future = self.inner.call(wire);
        drop(entered);
        RetryFuture::new(
            future,
            held,
            scope,
            (safety, allowance, sends_before),
            self.made.hold(),
        )
    }
}

impl<S: Clone, P> Clone for Retry<S, P> {
    fn clone(&self) -> Self {
        Self::new(self.inner.clone(), self.made.clone())
    }
}

impl<S: fmt::Debug, P> fmt::Debug for Retry<S, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retry")
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}
