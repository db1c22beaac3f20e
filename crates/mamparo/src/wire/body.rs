//! A response body that is bounded by a deadline and by how long it may stall.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http_body::{Body, Frame, SizeHint};
use mamparo_core::clock::{self, Instant};
use mamparo_core::{
    BoxError, CallContext, Deadline, Dependency, Event, Observer, Reason, Rejection, What,
};
use pin_project::pin_project;
use tokio::time::Sleep;

/// What bounds a response body.
#[derive(Clone, Debug, Default)]
pub struct BodyLimits {
    pub(crate) context: Option<CallContext>,
    pub(crate) dependency: Dependency,
    pub(crate) deadline: Option<Deadline>,
    pub(crate) idle: Option<Duration>,
    pub(crate) observer: Option<Arc<dyn Observer>>,
}

impl BodyLimits {
    /// Polls the body in this context.
    #[must_use]
    pub const fn within(mut self, context: CallContext) -> Self {
        self.context = Some(context);
        self.dependency = context.dependency();
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
/// A cut drops the body, so that the connection is given up, and ends the stream with a [`Rejection`].
#[pin_project]
pub struct TimedBody<B> {
    #[pin]
    body: Option<B>,
    limits: BodyLimits,
    /// When the wait for the next frame ends, while one is waited for.
    idle_until: Option<Deadline>,
    /// Made when something is pending; boxed so that the body stays `Unpin` where its inner one is.
    timer: Option<Pin<Box<Sleep>>>,
}

impl<B> TimedBody<B> {
    /// Bounds a body.
    pub const fn new(body: B, limits: BodyLimits) -> Self {
        Self {
            body: Some(body),
            limits,
            idle_until: None,
            timer: None,
        }
    }
}

impl BodyLimits {
    fn enter<R>(&mut self, poll: impl FnOnce() -> R) -> R {
        match &mut self.context {
            Some(context) => context.enter(poll),
            None => poll(),
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

    fn report(&self, rejection: &Rejection) {
        if self.observer.is_some() {
            let context = self.context.unwrap_or_else(CallContext::current);
            Event::report(self.observer.as_ref(), &context, What::Rejected(rejection));
        }
    }
}

/// Waits for the earlier of two limits; ready when `due` may have been reached.
fn poll_timer(timer: &mut Option<Pin<Box<Sleep>>>, due: Instant, cx: &mut Context<'_>) -> Poll<()> {
    let timer = timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(due)));
    // A timer that fires too early is set again then: cheaper than setting it at every frame.
    if timer.is_elapsed() || timer.deadline() > due {
        timer.as_mut().reset(due);
    }
    timer.as_mut().poll(cx)
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
        let Some(body) = this.body.as_mut().as_pin_mut() else {
            return Poll::Ready(None);
        };
        if let Poll::Ready(frame) = this.limits.enter(|| body.poll_frame(cx)) {
            *this.idle_until = None;
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        if this.limits.deadline.is_none() && this.limits.idle.is_none() {
            return Poll::Pending;
        }
        loop {
            let now = clock::now();
            if let Some(idle) = this.limits.idle {
                this.idle_until
                    .get_or_insert_with(|| Deadline::after(now, idle));
            }
            if let Some(rejection) = this.limits.reached(*this.idle_until, now) {
                this.limits.report(&rejection);
                this.body.set(None);
                return Poll::Ready(Some(Err(rejection.into())));
            }
            let Some(due) = [*this.idle_until, this.limits.deadline]
                .into_iter()
                .flatten()
                .min()
            else {
                return Poll::Pending;
            };
            if poll_timer(this.timer, due.instant(), cx).is_pending() {
                return Poll::Pending;
            }
        }
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
