//! One request, until its deadline.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use mamparo_core::clock::Instant;
use mamparo_core::gate::GateFuture;
use mamparo_core::{BoxError, CallContext, Reason};
use pin_project::pin_project;
use tower_service::Service;

use super::error::{cut, refused};
use super::layer::Shared;
use crate::bound::Bounded;
use crate::wire::BoundsAnswer;

/// The future of a request whose handler is dropped at its deadline.
#[pin_project]
#[must_use = "futures do nothing unless polled"]
pub struct ServerDeadlineFuture<S: Service<Req>, W, Req> {
    #[pin]
    call: Bounded<S, Req, CallContext>,
    refusal: Option<Reason>,
    arrived: Instant,
    shared: Arc<Shared<W>>,
}

impl<S: Service<Req>, W, Req> ServerDeadlineFuture<S, W, Req> {
    /// Runs the handler's call.
    #[inline]
    pub(super) const fn new(
        inner: GateFuture<S, Req>,
        refusal: Option<Reason>,
        context: CallContext,
        arrived: Instant,
        shared: Arc<Shared<W>>,
    ) -> Self {
        Self {
            call: Bounded::new(inner, context),
            refusal,
            arrived,
            shared,
        }
    }
}

impl<S, W, Req> Future for ServerDeadlineFuture<S, W, Req>
where
    S: Service<Req>,
    S::Error: Into<BoxError>,
    W: BoundsAnswer<S::Response>,
{
    type Output = Result<W::Bounded, BoxError>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let (shared, arrived) = (this.shared, *this.arrived);
        let refusal = this.refusal.unwrap_or(Reason::DeadlineExceeded);
        let observer = shared.observer.as_ref();
        this.call
            .poll_operation(cx, &shared.wire, observer, |_, cut_at| match cut_at {
                Some(deadline) => cut(deadline.remaining(arrived)),
                None => refused(refusal),
            })
    }
}

impl<S: Service<Req>, W, Req> fmt::Debug for ServerDeadlineFuture<S, W, Req> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerDeadlineFuture")
            .field("deadline", &self.call.scope().deadline())
            .finish_non_exhaustive()
    }
}
