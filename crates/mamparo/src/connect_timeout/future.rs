//! One connection, until its limit.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use mamparo_core::gate::GateFuture;
use mamparo_core::{BoxError, Dependency};
use pin_project::pin_project;
use tokio::time::Sleep;
use tower_service::Service;

use super::error::too_slow;
use crate::timer;

/// The future of a connection that ends at its limit.
#[pin_project]
#[must_use = "futures do nothing unless polled"]
pub struct ConnectTimeoutFuture<S: Service<Req>, Req> {
    #[pin]
    inner: Option<GateFuture<S, Req>>,
    /// Boxed, so that the future is `Unpin` where the connector's is; made once that was pending.
    timer: Option<Pin<Box<Sleep>>>,
    limit: Option<Duration>,
    dependency: Dependency,
}

impl<S: Service<Req>, Req> ConnectTimeoutFuture<S, Req> {
    pub(super) const fn new(
        inner: GateFuture<S, Req>,
        limit: Option<Duration>,
        dependency: Dependency,
    ) -> Self {
        Self {
            inner: Some(inner),
            timer: None,
            limit,
            dependency,
        }
    }
}

impl<S, Req> Future for ConnectTimeoutFuture<S, Req>
where
    S: Service<Req>,
    S::Error: Into<BoxError>,
{
    type Output = Result<S::Response, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if let Some(inner) = this.inner.as_mut().as_pin_mut()
            && let Poll::Ready(result) = inner.poll(cx)
        {
            return Poll::Ready(result.map_err(Into::into));
        }
        let Some(limit) = *this.limit else {
            return Poll::Pending;
        };
        let sleep = this
            .timer
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(limit)));
        ready!(timer::poll(sleep.as_mut(), cx));
        this.inner.set(None);
        Poll::Ready(Err(too_slow(*this.dependency, limit).into()))
    }
}

impl<S: Service<Req>, Req> fmt::Debug for ConnectTimeoutFuture<S, Req> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectTimeoutFuture")
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}
