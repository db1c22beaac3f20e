//! The wiring of one exchange.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use mamparo_core::Outcome;
use tower_service::Service;

use super::future::ExchangeFuture;
use super::guard::ExchangeGuard;
use super::role::Passes;
use super::shared::Shared;

/// A service whose every call is recorded.
pub struct Exchange<S, P, R> {
    inner: S,
    shared: Arc<Shared<P, R>>,
}

impl<S, P, R> Exchange<S, P, R> {
    pub(crate) const fn new(inner: S, shared: Arc<Shared<P, R>>) -> Self {
        Self { inner, shared }
    }
}

impl<S, P, R, A, B> Service<Request<A>> for Exchange<S, P, R>
where
    S: Service<Request<A>, Response = Response<B>>,
    P: Outcome<Response<B>>,
    R: Passes<S::Error>,
{
    type Response = P::Out<ExchangeGuard<R>>;
    type Error = R::Error;
    type Future = ExchangeFuture<S::Future, P, R>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), R::Error>> {
        self.inner.poll_ready(cx).map_err(R::pass)
    }

    fn call(&mut self, mut request: Request<A>) -> Self::Future {
        let exchange = ExchangeGuard::begin(&self.shared, &mut request);
        let inner = exchange.enter(|| self.inner.call(request));
        ExchangeFuture::new(inner, exchange, Arc::clone(&self.shared))
    }
}

impl<S: Clone, P, R> Clone for Exchange<S, P, R> {
    fn clone(&self) -> Self {
        Self::new(self.inner.clone(), Arc::clone(&self.shared))
    }
}

impl<S: fmt::Debug, P, R: fmt::Debug> fmt::Debug for Exchange<S, P, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange")
            .field("inner", &self.inner)
            .field("role", &self.shared.role)
            .field("dependency", &self.shared.dependency)
            .finish_non_exhaustive()
    }
}
