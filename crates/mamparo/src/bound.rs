//! One call through a gate, until an instant: what every layer that limits a call has in common.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use mamparo_core::clock;
use mamparo_core::gate::GateFuture;
use mamparo_core::{BoxError, CallContext, Deadline, Event, Observer, Rejection, What};
use pin_project::pin_project;
use tokio::task::coop;
use tokio::time::Sleep;
use tower_service::Service;

use crate::wire::{BodyLimits, BoundsAnswer};

/// How late an answer may be before it is reported: timers are no finer than a millisecond.
const LATE: Duration = Duration::from_millis(5);

/// A call that runs in a scope of its own, and is dropped at an instant.
///
/// A layer's future is this and nothing else: what it needs besides is in the scope, since each struct around a future
/// copies the future once more.
#[pin_project]
pub(crate) struct Bounded<S: Service<Req>, Req, C> {
    #[pin]
    inner: GateFuture<S, Req>,
    /// Made once the inner future was pending.
    #[pin]
    timer: Option<Sleep>,
    scope: C,
}

/// What is current while a call runs, and what its end needs.
pub(crate) trait Scope {
    fn enter<R>(&mut self, f: impl FnOnce() -> R) -> R;
}

/// The scope of a whole operation.
pub(crate) trait Operation: Scope {
    type Wire;

    fn context(&self) -> &CallContext;

    fn wire(&self) -> &Self::Wire;

    fn observer(&self) -> Option<&Arc<dyn Observer>>;

    /// Rejects the operation: it was cut at that deadline, or refused at none.
    fn rejection(&self, cut_at: Option<Deadline>) -> Rejection;
}

/// Why a bounded call has no answer.
pub(crate) enum Over<E> {
    /// It was never made.
    Refused,
    /// The inner service failed.
    Failed(E),
    /// Its instant came first; `sent` tells whether the inner service had been called.
    Cut { sent: bool },
}

impl<S: Service<Req>, Req, C: Scope> Bounded<S, Req, C> {
    /// Bounds a call.
    #[inline]
    pub(crate) const fn new(inner: GateFuture<S, Req>, scope: C) -> Self {
        Self {
            inner,
            timer: None,
            scope,
        }
    }

    /// Returns what is current while the call runs.
    #[inline]
    pub(crate) const fn scope(&self) -> &C {
        &self.scope
    }

    /// Polls the call, and drops it once `until` has passed.
    #[inline]
    pub(crate) fn poll(
        self: Pin<&mut Self>,
        until: Option<Deadline>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<S::Response, Over<S::Error>>> {
        let mut this = self.project();
        if matches!(*this.inner, GateFuture::None) {
            return Poll::Ready(Err(Over::Refused));
        }
        // A busy machine may poll us long after the instant, with the inner service ready by now.
        let waiting = !this.inner.is_called();
        if waiting && until.is_some_and(|until| until.has_passed(clock::now())) {
            this.inner.set(GateFuture::None);
            return Poll::Ready(Err(Over::Cut { sent: false }));
        }
        if let Poll::Ready(result) = this.scope.enter(|| this.inner.as_mut().poll(cx)) {
            return Poll::Ready(result.map_err(Over::Failed));
        }
        let Some(until) = until else {
            return Poll::Pending;
        };
        if this.timer.is_none() {
            this.timer
                .set(Some(tokio::time::sleep_until(until.instant())));
        }
        if let Some(timer) = this.timer.as_mut().as_pin_mut() {
            ready!(poll_timer(timer, cx));
        }
        let sent = this.inner.is_called();
        // Dropped before anybody hears of it: nothing inside works on, and a resend finds the connection given up.
        CallContext::cut(|| this.inner.set(GateFuture::None));
        Poll::Ready(Err(Over::Cut { sent }))
    }
}

impl<S: Service<Req>, Req, C: Operation> Bounded<S, Req, C> {
    /// Polls an operation until its deadline, which bounds its answer's stream too.
    #[inline]
    pub(crate) fn poll_operation<W>(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<W::Bounded, BoxError>>
    where
        S::Error: Into<BoxError>,
        C: Operation<Wire = W>,
        W: BoundsAnswer<S::Response>,
    {
        let deadline = self.scope.context().deadline();
        let result = ready!(self.as_mut().poll(deadline, cx));
        let (context, observer) = (self.scope.context(), self.scope.observer());
        if !matches!(result, Err(Over::Refused)) {
            report_late(context, observer);
        }
        let cut_at = match result {
            Ok(answer) => {
                return Poll::Ready(Ok(self.scope.wire().bound(answer, || {
                    BodyLimits::default()
                        .within(*context)
                        .until(deadline)
                        .observer(observer.cloned())
                })));
            }
            Err(Over::Failed(error)) => return Poll::Ready(Err(error.into())),
            Err(Over::Cut { sent }) => deadline.filter(|_| sent),
            Err(Over::Refused) => None,
        };
        let rejection = self.scope.rejection(cut_at);
        Poll::Ready(Err(reject(rejection, context, observer)))
    }
}

/// Polls a timer after what it bounds was pending.
///
/// What uses up its task's budget at every poll would keep a timer from ever being asked; this asks it all the same.
#[inline]
pub(crate) fn poll_timer(timer: Pin<&mut Sleep>, cx: &mut Context<'_>) -> Poll<()> {
    pin!(coop::unconstrained(timer)).poll(cx)
}

/// Reports a rejection, and makes it the call's error.
#[cold]
pub(crate) fn reject(
    rejection: Rejection,
    context: &CallContext,
    observer: Option<&Arc<dyn Observer>>,
) -> BoxError {
    Event::report(observer, context, What::Rejected(&rejection));
    rejection.into()
}

/// Says that a poll inside came back after the deadline: something there blocks.
#[inline]
fn report_late(context: &CallContext, observer: Option<&Arc<dyn Observer>>) {
    let Some(deadline) = context.deadline().filter(|_| observer.is_some()) else {
        return;
    };
    let late = deadline.lateness(clock::now());
    if late >= LATE {
        Event::report(observer, context, What::LateWork { late });
    }
}
