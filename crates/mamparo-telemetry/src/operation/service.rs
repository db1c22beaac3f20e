//! The wiring of one call.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use mamparo_core::{BoxError, Outcome};
use tower_service::Service;

use super::future::OperationFuture;
use super::guard::OperationGuard;
use super::layer::Shared;

/// A service whose every call is one operation; made by [`OperationLayer`](super::OperationLayer).
pub struct Operation<S, P> {
    inner: S,
    shared: Arc<Shared<P>>,
}

impl<S, P> Operation<S, P> {
    pub(super) const fn new(inner: S, shared: Arc<Shared<P>>) -> Self {
        Self { inner, shared }
    }
}

impl<S, P, Req> Service<Req> for Operation<S, P>
where
    S: Service<Req, Error: Into<BoxError>>,
    P: Outcome<S::Response>,
{
    type Response = P::Out<OperationGuard>;
    type Error = BoxError;
    type Future = OperationFuture<S::Future, P>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Req) -> Self::Future {
        let mut operation = OperationGuard::begin(&self.shared);
        let inner = operation.enter(|| self.inner.call(request));
        OperationFuture::new(inner, operation, Arc::clone(&self.shared))
    }
}

impl<S: Clone, P> Clone for Operation<S, P> {
    fn clone(&self) -> Self {
        Self::new(self.inner.clone(), Arc::clone(&self.shared))
    }
}

impl<S: fmt::Debug, P> fmt::Debug for Operation<S, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operation")
            .field("inner", &self.inner)
            .field("dependency", &self.shared.dependency)
            .finish_non_exhaustive()
    }
}
