//! The wiring of a retry.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use mamparo_core::{BoxError, CallContext, Cause, Classify, LayerKind};
use tower_service::Service;

use super::layer::Shared;
use super::state::allowance;
use super::{Answer, RetryFuture};
use crate::replay::Replay;

/// Sends failed requests again; see the [module](super).
pub struct Retry<S, P> {
    inner: S,
    shared: Arc<Shared<P>>,
}

impl<S, P> Retry<S, P> {
    pub(super) const fn new(inner: S, shared: Arc<Shared<P>>) -> Self {
        Self { inner, shared }
    }
}

impl<S, P, Req> Service<Req> for Retry<S, P>
where
    P: Replay<Req> + Classify<S::Response> + Answer<S::Response>,
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
        let shared = &self.shared;
        let mut context = CallContext::join(LayerKind::Retry, shared.dependency);
        let allowance = allowance(&shared.policy, context.is_inside_retry());
        context.set_attempt(1, allowance.attempts, Cause::Original);
        if shared.observer.is_some() {
            context.set_started(mamparo_core::clock::now());
        }
        if context.is_inside_retry() || context.upstream_attempt() > 1 {
            shared.report_nested(&context);
        }
        let safety = shared.protocol.safety(&request);
        let keep = (allowance.attempts > 1).then_some(shared.policy.settings.max_body);
        let (wire, held) = shared.protocol.split(request, keep);
        // The instance that was polled ready makes the first attempt; the clone waits for its own readiness.
        let service = held.is_some().then(|| self.inner.clone());
        let sends_before = context.sends();
        let entered = context.entered();
        let future = self.inner.call(wire);
        drop(entered);
        RetryFuture::new(
            future,
            service,
            held,
            context,
            (safety, allowance, sends_before),
            Arc::clone(shared),
        )
    }
}

impl<S: Clone, P> Clone for Retry<S, P> {
    fn clone(&self) -> Self {
        Self::new(self.inner.clone(), Arc::clone(&self.shared))
    }
}

impl<S: fmt::Debug, P> fmt::Debug for Retry<S, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retry")
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}
