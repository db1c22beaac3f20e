//! One attempt, until its limit.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use mamparo_core::gate::GateFuture;
use mamparo_core::{BoxError, CallContext, Event, Rejection, What};
use pin_project::pin_project;
use tokio::time::Sleep;
use tower_service::Service;

use super::error::reached;
use super::layer::Shared;
use super::state::Limit;
use crate::wire::{BodyLimits, BoundsAnswer};

/// The future of an attempt that ends at its limit.
#[pin_project]
#[must_use = "futures do nothing unless polled"]
pub struct AttemptTimeoutFuture<S: Service<Req>, W, Req> {
    /// None when nothing remained: the attempt was refused.
    #[pin]
    inner: Option<GateFuture<S, Req>>,
    /// Made once the inner future was pending.
    #[pin]
    timer: Option<Sleep>,
    limit: Limit,
    context: CallContext,
    shared: Arc<Shared<W>>,
}

impl<S: Service<Req>, W, Req> AttemptTimeoutFuture<S, W, Req> {
    #[inline]
    pub(super) const fn new(
        inner: Option<GateFuture<S, Req>>,
        limit: Limit,
        context: CallContext,
        shared: Arc<Shared<W>>,
    ) -> Self {
        Self {
            inner,
            timer: None,
            limit,
            context,
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
        let Some(inner) = this.inner.as_mut().as_pin_mut() else {
            return Poll::Ready(Err(this.shared.reject(*this.limit, this.context, false)));
        };
        if let Poll::Ready(result) = this.context.enter(|| inner.poll(cx)) {
            return Poll::Ready(match result {
                Ok(answer) => Ok(this.shared.bound(answer, this.context)),
                Err(error) => Err(error.into()),
            });
        }
        let Some(cut) = this.context.attempt_cut() else {
            return Poll::Pending;
        };
        if this.timer.is_none() {
            this.timer
                .set(Some(tokio::time::sleep_until(cut.instant())));
        }
        if let Some(timer) = this.timer.as_mut().as_pin_mut() {
            ready!(timer.poll(cx));
        }
        let sent = this
            .inner
            .as_ref()
            .as_pin_ref()
            .is_some_and(|inner| inner.is_called());
        // Dropped before anybody hears of it, so that a resend finds the connection given up.
        this.inner.set(None);
        Poll::Ready(Err(this.shared.reject(*this.limit, this.context, sent)))
    }
}

impl<W> Shared<W> {
    #[inline]
    fn bound<Res>(&self, answer: Res, context: &CallContext) -> W::Bounded
    where
        W: BoundsAnswer<Res>,
    {
        let limits = BodyLimits::default()
            .dependency(context.dependency())
            .until(context.attempt_deadline())
            .idle(self.policy.body_idle())
            .observer(self.observer.clone());
        self.wire.bound(answer, limits)
    }

    #[cold]
    fn reject(&self, limit: Limit, context: &CallContext, sent: bool) -> BoxError {
        let rejection: Rejection = reached(limit, context, self.dependency, sent);
        Event::report(self.observer.as_ref(), context, What::Rejected(&rejection));
        rejection.into()
    }
}

impl<S: Service<Req>, W, Req> fmt::Debug for AttemptTimeoutFuture<S, W, Req> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AttemptTimeoutFuture")
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}
