//! The wiring of a connection's limit.

use std::task::{Context, Poll};
use std::time::Duration;

use mamparo_core::{BoxError, Dependency, Gate};
use tower_service::Service;

use super::ConnectTimeoutFuture;

/// Bounds the making of a connection; see the [module](super).
#[derive(Clone, Debug)]
pub struct ConnectTimeout<S> {
    inner: Gate<S>,
    limit: Option<Duration>,
    dependency: Dependency,
}

impl<S> ConnectTimeout<S> {
    pub(super) const fn new(inner: S, limit: Option<Duration>, dependency: Dependency) -> Self {
        Self {
            inner: Gate::new(inner),
            limit,
            dependency,
        }
    }
}

impl<S, Req> Service<Req> for ConnectTimeout<S>
where
    S: Service<Req> + Clone,
    S::Error: Into<BoxError>,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = ConnectTimeoutFuture<S, Req>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Req) -> Self::Future {
        ConnectTimeoutFuture::new(self.inner.call(request), self.limit, self.dependency)
    }
}
