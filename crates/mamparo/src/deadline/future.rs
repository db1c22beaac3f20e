//! One operation, until its deadline.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use mamparo_core::clock::Instant;
use mamparo_core::gate::GateFuture;
use mamparo_core::{BoxError, CallContext};
use pin_project::pin_project;
use tower_service::Service;

use super::error::{cut, refused};
use super::layer::Shared;
use crate::bound::Bounded;
use crate::wire::BoundsAnswer;

/// The future of an operation that ends at its deadline.
#[pin_project]
#[must_use = "futures do nothing unless polled"]
pub struct DeadlineFuture<S: Service<Req>, W, Req> {
    #[pin]
    call: Bounded<S, Req, CallContext>,
    called: Instant,
    shared: Arc<Shared<W>>,
}

impl<S: Service<Req>, W, Req> DeadlineFuture<S, W, Req> {
    /// Runs a call that was made at `called`.
    #[inline]
    pub(super) const fn new(
        inner: GateFuture<S, Req>,
        context: CallContext,
        called: Instant,
        shared: Arc<Shared<W>>,
    ) -> Self {
        Self {
            call: Bounded::new(inner, context),
            called,
            shared,
        }
    }
}

impl<S, W, Req> Future for DeadlineFuture<S, W, Req>
where
    S: Service<Req>,
    S::Error: Into<BoxError>,
    W: BoundsAnswer<S::Response>,
{
    type Output = Result<W::Bounded, BoxError>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let (shared, called) = (this.shared, *this.called);
        let observer = shared.observer.as_ref();
        this.call
            .poll_operation(cx, &shared.wire, observer, |context, cut_at| match cut_at {
                Some(deadline) => cut(context, deadline.remaining(called)),
                None => refused(context),
            })
    }
}

impl<S: Service<Req>, W, Req> fmt::Debug for DeadlineFuture<S, W, Req> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeadlineFuture")
            .field("deadline", &self.call.scope().deadline())
            .finish_non_exhaustive()
    }
}
