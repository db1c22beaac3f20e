//! One attempt, until its limit.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use mamparo_core::gate::GateFuture;
use mamparo_core::{BoxError, CallContext};
use pin_project::pin_project;
use tower_service::Service;

use super::error::reached;
use super::layer::Shared;
use super::state::Limit;
use crate::bound::{self, Bounded, Over};
use crate::wire::{BodyLimits, BoundsAnswer};

/// The future of an attempt that ends at its limit.
#[pin_project]
#[must_use = "futures do nothing unless polled"]
pub struct AttemptTimeoutFuture<S: Service<Req>, W, Req> {
    #[pin]
    call: Bounded<S, Req>,
    limit: Limit,
    shared: Arc<Shared<W>>,
}

impl<S: Service<Req>, W, Req> AttemptTimeoutFuture<S, W, Req> {
    /// Runs an attempt; none is one that was refused, because nothing remained.
    #[inline]
    pub(super) const fn new(
        inner: Option<GateFuture<S, Req>>,
        limit: Limit,
        context: CallContext,
        shared: Arc<Shared<W>>,
    ) -> Self {
        Self {
            call: Bounded::new(inner, context),
            limit,
            shared,
        }
    }
}

impl<S, W, Req> Future for AttemptTimeoutFuture<S, W, Req>
where
    S: Service<Req>,
    S::Error: Into<BoxError>,
    W: BoundsAnswer<S::Response>,
{
    type Output = Result<W::Bounded, BoxError>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let cut = this.call.context().attempt_cut();
        let over = ready!(this.call.as_mut().poll(cut, cx));
        let context = this.call.context();
        let sent = match over {
            Over::Ended(result) => {
                return Poll::Ready(match result {
                    Ok(answer) => Ok(this.shared.bound(answer, context)),
                    Err(error) => Err(error.into()),
                });
            }
            Over::Cut { sent } => sent,
            Over::Refused => false,
        };
        Poll::Ready(Err(this.shared.reject(*this.limit, context, sent)))
    }
}

impl<W> Shared<W> {
    #[inline]
    fn bound<Res>(&self, answer: Res, context: &CallContext) -> W::Bounded
    where
        W: BoundsAnswer<Res>,
    {
        let limits = BodyLimits::default()
            .within(*context)
            .dependency(self.name(context))
            .until(context.attempt_deadline())
            .idle(self.policy.body_idle())
            .observer(self.observer.clone());
        self.wire.bound(answer, limits)
    }

    #[cold]
    fn reject(&self, limit: Limit, context: &CallContext, sent: bool) -> BoxError {
        let rejection = reached(limit, self.name(context), sent);
        bound::reject(rejection, context, self.observer.as_ref())
    }
}

impl<S: Service<Req>, W, Req> fmt::Debug for AttemptTimeoutFuture<S, W, Req> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AttemptTimeoutFuture")
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}
