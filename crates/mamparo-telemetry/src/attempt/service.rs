//! The wiring of one send.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use mamparo_core::{BoxError, Outcome};
use tower_service::Service;

use super::future::AttemptFuture;
use super::guard::AttemptGuard;
use super::layer::Shared;

/// A service whose every call is one physical send; made by [`AttemptLayer`](super::AttemptLayer).
pub struct Attempt<S, P> {
    inner: S,
    shared: Arc<Shared<P>>,
}

impl<S, P> Attempt<S, P> {
    pub(super) const fn new(inner: S, shared: Arc<Shared<P>>) -> Self {
        Self { inner, shared }
    }
}

impl<S, P, A, B> Service<Request<A>> for Attempt<S, P>
where
    S: Service<Request<A>, Response = Response<B>, Error: Into<BoxError>>,
    P: Outcome<Response<B>>,
{
    type Response = P::Out<AttemptGuard>;
    type Error = BoxError;
    type Future = AttemptFuture<S::Future, P>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, mut request: Request<A>) -> Self::Future {
        let attempt = AttemptGuard::begin(&self.shared, &mut request);
        let inner = attempt.enter(|| self.inner.call(request));
        AttemptFuture::new(inner, attempt, Arc::clone(&self.shared))
    }
}

impl<S: Clone, P> Clone for Attempt<S, P> {
    fn clone(&self) -> Self {
        Self::new(self.inner.clone(), Arc::clone(&self.shared))
    }
}

impl<S: fmt::Debug, P> fmt::Debug for Attempt<S, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attempt")
            .field("inner", &self.inner)
            .field("dependency", &self.shared.dependency)
            .finish_non_exhaustive()
    }
}
