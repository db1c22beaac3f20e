//! One call through a gate, until an instant: what every layer that limits a call has in common.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use mamparo_core::clock;
use mamparo_core::gate::GateFuture;
use mamparo_core::grpc::Code;
use mamparo_core::{BoxError, CallContext, Deadline, Event, Observer, Rejection, Scope, What};
use pin_project::{pin_project, pinned_drop};
use tower_service::Service;

use crate::timer::Timer;
use crate::wire::{BodyLimits, BoundsAnswer};

/// How late an answer may be before it is reported: timers are no finer than a millisecond.
const LATE: Duration = Duration::from_millis(5);

/// A call that runs in a scope of its own, and is dropped at an instant.
///
/// A layer's future is this and nothing else: what it needs besides is in the scope, since each struct around a future
/// copies the future once more.
#[pin_project(PinnedDrop)]
pub(crate) struct Bounded<S: Service<Req>, Req, C: Scoped> {
    #[pin]
    inner: GateFuture<S, Req>,
    /// Made once the inner future was pending and nothing inside had promised to wake the task in time.
    #[pin]
    timer: C::Timer,
    scope: C,
}

/// What is current while a call runs, and what its end needs.
pub(crate) trait Scoped {
    type Timer: Timer;

    fn enter<R>(&mut self, f: impl FnOnce() -> R) -> R;

    /// Notes that the call was pending.
    #[inline]
    fn note_wait(&mut self) {}
}

/// The scope of a whole operation.
pub(crate) trait Operation: Scoped {
    type Wire;

    fn scope(&self) -> &Scope;

    fn parts(&mut self) -> Parts<'_, Self::Wire>;

    /// Rejects the operation: it was cut at that deadline, or refused at none.
    fn rejection(&self, cut_at: Option<Deadline>) -> Rejection;
}

/// What an operation's answer needs.
pub(crate) struct Parts<'a, W> {
    pub(crate) scope: &'a mut Scope,
    pub(crate) wire: &'a W,
    pub(crate) observer: Option<&'a Arc<dyn Observer>>,
    /// Counts operations that ended late: where somebody counts them, and this one was pending.
    pub(crate) late: Option<&'a AtomicU64>,
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

impl<S: Service<Req>, Req, C: Scoped> Bounded<S, Req, C> {
    /// Bounds a call.
    #[inline]
    pub(crate) fn new(inner: GateFuture<S, Req>, scope: C) -> Self {
        Self {
            inner,
            timer: C::Timer::default(),
            scope,
        }
    }

    /// Returns what is current while the call runs.
    #[inline]
    pub(crate) const fn scope(&self) -> &C {
        &self.scope
    }

    /// Polls the call until that instant, or for as long as it takes.
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
        let polled = this.scope.enter(|| match this.inner.as_mut().poll(cx) {
            Poll::Ready(result) => Ok(result),
            Poll::Pending => Err(CallContext::promised_wake()),
        });
        let promised = match polled {
            Ok(result) => return Poll::Ready(result.map_err(Over::Failed)),
            Err(promised) => promised,
        };
        let Some(until) = until else {
            return Poll::Pending;
        };
        this.scope.note_wait();
        ready!(poll_wait(this.timer, promised, until, cx));
        let sent = this.inner.is_called();
        // Dropped before anybody hears of it: nothing inside works on, and a resend finds the connection given up.
        CallContext::cut(|| this.inner.set(GateFuture::None));
        Poll::Ready(Err(Over::Cut { sent }))
    }
}

/// Waits until that instant: by a timer, unless one inside has promised to wake the task no later.
fn poll_wait<T: Timer>(
    timer: Pin<&mut T>,
    promised: Option<Deadline>,
    until: Deadline,
    cx: &mut Context<'_>,
) -> Poll<()> {
    let promised = promised.filter(|at| *at <= until && !timer.is_made());
    if promised.is_none() && timer.poll_until(until, cx).is_ready() {
        return Poll::Ready(());
    }
    CallContext::promise_wake(promised.unwrap_or(until));
    Poll::Pending
}

#[pinned_drop]
impl<S: Service<Req>, Req, C: Scoped> PinnedDrop for Bounded<S, Req, C> {
    #[inline]
    fn drop(self: Pin<&mut Self>) {
        if self.timer.is_made() {
            CallContext::break_promise();
        }
    }
}

impl<S: Service<Req>, Req, C: Operation> Bounded<S, Req, C> {
    /// Polls the call until its operation's deadline, and bounds the answer by it too.
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
        let deadline = self.scope.scope().deadline();
        let result = ready!(self.as_mut().poll(deadline, cx));
        let operation = self.project().scope;
        let Parts {
            scope,
            wire,
            observer,
            late,
        } = operation.parts();
        if observer.is_some() || late.is_some() {
            report_late(scope, observer, late);
        }
        let cut_at = match result {
            Ok(answer) if was_cut(wire, &answer, || deadline) => deadline,
            Ok(answer) => {
                return Poll::Ready(Ok(wire.bound(answer, || {
                    BodyLimits::default()
                        .within(scope.take())
                        .until(deadline)
                        .observer(observer.cloned())
                })));
            }
            Err(Over::Failed(error)) => {
                let error = error.into();
                if !failed_by_cut(&error, deadline) {
                    return Poll::Ready(Err(error));
                }
                deadline
            }
            Err(Over::Cut { sent }) => deadline.filter(|_| sent),
            Err(Over::Refused) => None,
        };
        let rejection = operation.rejection(cut_at);
        let Parts {
            scope, observer, ..
        } = operation.parts();
        Poll::Ready(Err(reject(rejection, &scope.context(), observer)))
    }
}

/// Tells whether an answer says no more than that the deadline has passed, in the peer's words.
#[inline]
pub(crate) fn was_cut<W, Res>(
    wire: &W,
    answer: &Res,
    deadline: impl FnOnce() -> Option<Deadline>,
) -> bool
where
    W: BoundsAnswer<Res>,
{
    wire.says_cancelled(answer) && deadline().is_some_and(|it| it.has_passed(clock::now()))
}

/// Tells whether an error says no more than that, as the reset of a stream by a peer that obeys our deadline does.
#[cold]
pub(crate) fn failed_by_cut(error: &BoxError, deadline: Option<Deadline>) -> bool {
    Code::of_error(error) == Code::Cancelled
        && deadline.is_some_and(|deadline| deadline.has_passed(clock::now()))
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
fn report_late(scope: &Scope, observer: Option<&Arc<dyn Observer>>, count: Option<&AtomicU64>) {
    let Some(deadline) = scope.deadline() else {
        return;
    };
    let late = deadline.lateness(clock::now());
    if late >= LATE {
        if let Some(count) = count {
            count.fetch_add(1, Relaxed);
        }
        Event::report(observer, &scope.context(), What::LateWork { late });
    }
}
