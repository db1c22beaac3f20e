//! One operation, until its deadline.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use mamparo_core::clock::{self, Instant};
use mamparo_core::gate::GateFuture;
use mamparo_core::{BoxError, CallContext, Event, Rejection, What};
use pin_project::pin_project;
use tokio::time::Sleep;
use tower_service::Service;

use super::error::{cut, refused};
use super::layer::Shared;
use crate::wire::{BodyLimits, BoundsAnswer};

/// How late an answer may be before it is reported: timers are no finer than a millisecond.
const LATE: Duration = Duration::from_millis(5);

/// The future of an operation that ends at its deadline.
#[pin_project]
#[must_use = "futures do nothing unless polled"]
pub struct DeadlineFuture<S: Service<Req>, W, Req> {
    #[pin]
    inner: Option<GateFuture<S, Req>>,
    /// Made once the inner future was pending.
    #[pin]
    timer: Option<Sleep>,
    context: CallContext,
    called: Option<Instant>,
    shared: Arc<Shared<W>>,
}

impl<S: Service<Req>, W, Req> DeadlineFuture<S, W, Req> {
    pub(super) const fn refused(context: CallContext, shared: Arc<Shared<W>>) -> Self {
        Self {
            inner: None,
            timer: None,
            context,
            called: None,
            shared,
        }
    }

    #[inline]
    pub(super) const fn running(
        inner: GateFuture<S, Req>,
        context: CallContext,
        now: Instant,
        shared: Arc<Shared<W>>,
    ) -> Self {
        Self {
            inner: Some(inner),
            timer: None,
            context,
            called: Some(now),
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
        let mut this = self.project();
        let Some(inner) = this.inner.as_mut().as_pin_mut() else {
            return Poll::Ready(Err(this.shared.reject(this.context, refused(this.context))));
        };
        if let Poll::Ready(result) = this.context.enter(|| inner.poll(cx)) {
            if this.timer.is_some() {
                this.shared.report_late(this.context);
            }
            return Poll::Ready(match result {
                Ok(answer) => Ok(this.shared.bound(answer, this.context)),
                Err(error) => Err(error.into()),
            });
        }
        let Some(deadline) = this.context.deadline() else {
            return Poll::Pending;
        };
        if this.timer.is_none() {
            this.timer
                .set(Some(tokio::time::sleep_until(deadline.instant())));
        }
        if let Some(timer) = this.timer.as_mut().as_pin_mut() {
            ready!(timer.poll(cx));
        }
        let sent = this
            .inner
            .as_ref()
            .as_pin_ref()
            .is_some_and(|inner| inner.is_called());
        // Dropped before the caller hears of it: nothing inside works on.
        this.inner.set(None);
        this.shared.report_late(this.context);
        let rejection = match (*this.called).filter(|_| sent) {
            Some(called) => cut(this.context, deadline.remaining(called)),
            None => refused(this.context),
        };
        Poll::Ready(Err(this.shared.reject(this.context, rejection)))
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
            .until(context.deadline())
            .observer(self.observer.clone());
        self.wire.bound(answer, limits)
    }

    #[cold]
    fn reject(&self, context: &CallContext, rejection: Rejection) -> BoxError {
        Event::report(self.observer.as_ref(), context, What::Rejected(&rejection));
        rejection.into()
    }

    /// Says that a poll inside came back after the deadline: something there blocks.
    fn report_late(&self, context: &CallContext) {
        let Some(deadline) = context.deadline().filter(|_| self.observer.is_some()) else {
            return;
        };
        let late = deadline.lateness(clock::now());
        if late >= LATE {
            Event::report(self.observer.as_ref(), context, What::LateWork { late });
        }
    }
}

impl<S: Service<Req>, W, Req> fmt::Debug for DeadlineFuture<S, W, Req> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeadlineFuture")
            .field("deadline", &self.context.deadline())
            .finish_non_exhaustive()
    }
}
