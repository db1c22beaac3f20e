//! The wiring of one call.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use mamparo_core::{BoxError, Outcome};
use tower_service::Service;

use super::future::OperationFuture;
use super::guard::OperationGuard;
use super::layer::Shared;
use super::role::Role;

/// A service whose every call is one operation; made by [`OperationLayer`](super::OperationLayer).
pub struct Operation<S, P, R> {
    inner: S,
    shared: Arc<Shared<P, R>>,
}

impl<S, P, R> Operation<S, P, R> {
    pub(super) const fn new(inner: S, shared: Arc<Shared<P, R>>) -> Self {
        Self { inner, shared }
    }
}

impl<S, P, R, Req> Service<Req> for Operation<S, P, R>
where
    S: Service<Req, Error: Into<BoxError>>,
    P: Outcome<S::Response>,
    R: Role<Req>,
{
    type Response = P::Out<OperationGuard<R::Kept>>;
    type Error = BoxError;
    type Future = OperationFuture<S::Future, P, R, R::Kept>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Req) -> Self::Future {
        let mut operation = OperationGuard::begin(&self.shared, &request);
        let inner = operation.enter(|| self.inner.call(request));
        OperationFuture::new(inner, operation, Arc::clone(&self.shared))
    }
}

impl<S: Clone, P, R> Clone for Operation<S, P, R> {
    fn clone(&self) -> Self {
        Self::new(self.inner.clone(), Arc::clone(&self.shared))
    }
}

impl<S: fmt::Debug, P, R> fmt::Debug for Operation<S, P, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operation")
            .field("inner", &self.inner)
            .field("dependency", &self.shared.dependency)
            .finish_non_exhaustive()
    }
}
