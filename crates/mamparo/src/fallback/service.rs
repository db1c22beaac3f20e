//! The wiring of a fallback.

use std::fmt;
use std::task::{Context, Poll};

use mamparo_core::shard::Spread;
use mamparo_core::{BoxError, Classify};
use tower_service::Service;

use super::layer::Shared;
use super::{FallbackFuture, Serve, Substitute};

/// Gives an operation that failed another answer; see the [module](super).
pub struct Fallback<S, P, F> {
    inner: S,
    shared: Spread<Shared<P, F>>,
}

impl<S, P, F> Fallback<S, P, F> {
    pub(super) const fn new(inner: S, shared: Spread<Shared<P, F>>) -> Self {
        Self { inner, shared }
    }
}

impl<S, P, F, Req> Service<Req> for Fallback<S, P, F>
where
    F: Substitute<P, Req>,
    P: Classify<S::Response> + Serve<S::Response, F::Response>,
    S: Service<F::Wire>,
    S::Error: Into<BoxError>,
{
    type Response = P::Out;
    type Error = BoxError;
    type Future = FallbackFuture<S, P, F, Req>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    #[inline]
    fn call(&mut self, request: Req) -> Self::Future {
        let shared = self.shared.hold();
        let max_body = shared.policy.settings.max_body;
        let (wire, kept) = shared.substitute.split(&shared.protocol, request, max_body);
        FallbackFuture::new(self.inner.call(wire), kept, shared)
    }
}

impl<S: Clone, P, F> Clone for Fallback<S, P, F> {
    fn clone(&self) -> Self {
        Self::new(self.inner.clone(), self.shared.clone())
    }
}

impl<S: fmt::Debug, P, F> fmt::Debug for Fallback<S, P, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fallback")
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}
