//! A response body that is bounded by a deadline and by how long it may stall.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http_body::{Body, Frame, SizeHint};
use mamparo_core::clock::{self, Instant};
use mamparo_core::{
    BoxError, CallContext, Deadline, Dependency, Event, Observer, Reason, Rejection, Scope, What,
};
use pin_project::{pin_project, pinned_drop};
use tokio::time::Sleep;

/// What bounds a response body.
#[derive(Debug, Default)]
pub struct BodyLimits {
    pub(crate) scope: Option<Scope>,
    pub(crate) dependency: Dependency,
    pub(crate) deadline: Option<Deadline>,
    pub(crate) idle: Option<Duration>,
    pub(crate) observer: Option<Arc<dyn Observer>>,
}

impl BodyLimits {
    /// Polls the body in this scope.
    #[must_use]
    pub fn within(mut self, scope: Scope) -> Self {
        self.dependency = scope.dependency();
        self.scope = Some(scope);
        self
    }

    /// Cuts the body at this instant.
    #[must_use]
    pub const fn until(mut self, deadline: Option<Deadline>) -> Self {
        self.deadline = deadline;
        self
    }

    /// Cuts the body when no frame has come for this long while one was waited for.
    #[must_use]
    pub const fn idle(mut self, idle: Option<Duration>) -> Self {
        self.idle = idle;
        self
    }

    /// Names the dependency in the rejection.
    #[must_use]
    pub const fn dependency(mut self, dependency: Dependency) -> Self {
        self.dependency = dependency;
        self
    }

    /// Reports a cut to an observer.
    #[must_use]
    pub fn observer(mut self, observer: Option<Arc<dyn Observer>>) -> Self {
        self.observer = observer;
        self
    }
}

/// A response body that is cut at a deadline, or when it stalls.
///
/// A cut drops the body, so that the connection is given up, and ends the stream with a [`Rejection`]. A frame that is
/// there after the deadline is given only if it is the last.
#[pin_project]
pub struct TimedBody<B> {
    #[pin]
    body: Option<B>,
    /// None where the body was at its end from the start. Boxed, so that a response stays small and is cheap to move.
    bounds: Option<Pin<Box<Bounds>>>,
}

/// The limits of a body, and the wait for its next frame.
#[pin_project(PinnedDrop)]
struct Bounds {
    limits: BodyLimits,
    /// When the wait ends, while a frame is waited for.
    idle_until: Option<Deadline>,
    /// Made when something is pending.
    #[pin]
    timer: Option<Sleep>,
}

impl<B: Body> TimedBody<B> {
    /// Bounds a body; the limits are asked for unless it is at its end already.
    pub fn new(body: B, limits: impl FnOnce() -> BodyLimits) -> Self {
        let bounds = (!body.is_end_stream()).then(|| {
            Box::pin(Bounds {
                limits: limits(),
                idle_until: None,
                timer: None,
            })
        });
        Self {
            body: Some(body),
            bounds,
        }
    }
}

impl BodyLimits {
    fn enter<R>(&mut self, poll: impl FnOnce() -> R) -> R {
        match &mut self.scope {
            Some(scope) => scope.enter(poll),
            None => {
                CallContext::break_promise();
                poll()
            }
        }
    }

    /// Says which limit has been reached, if one has.
    fn reached(&self, idle_until: Option<Deadline>, now: Instant) -> Option<Rejection> {
        let passed = |deadline: Option<Deadline>| deadline.is_some_and(|d| d.has_passed(now));
        if passed(self.deadline) {
            return Some(Rejection::cut(Reason::DeadlineExceeded, self.dependency));
        }
        let idle = self.idle.filter(|_| passed(idle_until))?;
        Some(Rejection::cut(Reason::BodyIdle, self.dependency).with_limit(idle))
    }

    /// Says whether the deadline has passed while there is `more` of the body.
    fn passed_in_stream(&self, more: bool) -> Option<Rejection> {
        self.deadline.filter(|_| more)?;
        self.reached(None, clock::now())
    }

    fn report(&self, rejection: &Rejection) {
        if self.observer.is_some() {
            let context = self
                .scope
                .as_ref()
                .map_or_else(CallContext::current, Scope::context);
            Event::report(self.observer.as_ref(), &context, What::Rejected(rejection));
        }
    }
}

impl Bounds {
    /// Waits until a limit is reached; for ever where there is none.
    fn poll_reached(
        self: Pin<&mut Self>,
        promised: Option<Deadline>,
        cx: &mut Context<'_>,
    ) -> Poll<Rejection> {
        let mut this = self.project();
        let limits = this.limits;
        if limits.idle.is_none() && this.timer.is_none() {
            let Some(deadline) = limits.deadline else {
                return Poll::Pending;
            };
            if let Some(promised) = promised.filter(|at| *at <= deadline) {
                CallContext::promise_wake(promised);
                return Poll::Pending;
            }
        }
        loop {
            let now = clock::now();
            if let Some(idle) = limits.idle {
                this.idle_until
                    .get_or_insert_with(|| Deadline::after(now, idle));
            }
            if let Some(rejection) = limits.reached(*this.idle_until, now) {
                return Poll::Ready(rejection);
            }
            let due = [*this.idle_until, limits.deadline].into_iter().flatten();
            let Some(due) = due.min() else {
                return Poll::Pending;
            };
            if poll_timer(this.timer.as_mut(), due.instant(), cx).is_pending() {
                CallContext::promise_wake(due);
                return Poll::Pending;
            }
        }
    }
}

#[pinned_drop]
impl PinnedDrop for Bounds {
    fn drop(self: Pin<&mut Self>) {
        if self.timer.is_some() {
            CallContext::break_promise();
        }
    }
}

/// Ready when `due` may have been reached.
fn poll_timer(mut timer: Pin<&mut Option<Sleep>>, due: Instant, cx: &mut Context<'_>) -> Poll<()> {
    if timer.is_none() {
        timer.set(Some(tokio::time::sleep_until(due)));
    }
    let Some(mut timer) = timer.as_pin_mut() else {
        return Poll::Pending; // not reached: it was made above
    };
    // No limit moves nearer, so one that fires too early is set again then: cheaper than setting it at every frame.
    if timer.is_elapsed() {
        timer.as_mut().reset(due);
    }
    timer.poll(cx)
}

impl<B> Body for TimedBody<B>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    type Data = B::Data;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, BoxError>>> {
        let mut this = self.project();
        let Some(mut body) = this.body.as_mut().as_pin_mut() else {
            return Poll::Ready(None);
        };
        let Some(bounds) = this.bounds else {
            let frame = ready!(body.poll_frame(cx));
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        };
        let open = bounds.as_mut().project();
        let polled = open.limits.enter(|| match body.as_mut().poll_frame(cx) {
            Poll::Ready(frame) => Ok(frame),
            Poll::Pending => Err(CallContext::promised_wake()),
        });
        let rejection = match polled {
            Err(promised) => ready!(bounds.as_mut().poll_reached(promised, cx)),
            Ok(frame) => {
                *open.idle_until = None;
                let data = matches!(&frame, Some(Ok(frame)) if frame.is_data());
                // Without this a body that always has a frame ready would go on for ever.
                let more = data && !body.is_end_stream();
                let Some(rejection) = open.limits.passed_in_stream(more) else {
                    return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
                };
                rejection
            }
        };
        bounds.limits.report(&rejection);
        CallContext::cut(|| this.body.set(None));
        Poll::Ready(Some(Err(rejection.into())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        match &self.body {
            Some(body) => body.size_hint(),
            None => SizeHint::with_exact(0),
        }
    }
}

impl<B: fmt::Debug> fmt::Debug for TimedBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimedBody")
            .field("body", &self.body)
            .finish_non_exhaustive()
    }
}
