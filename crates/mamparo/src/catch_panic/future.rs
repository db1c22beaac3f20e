//! One request, until its handler has answered or panicked.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::Response;
use mamparo_core::BoxError;
use pin_project::pin_project;

use super::error::caught;
use super::{CatchPanicBody, Panicked};

/// The future of a request whose handler may panic.
#[pin_project]
#[must_use = "futures do nothing unless polled"]
pub struct CatchPanicFuture<F> {
    #[pin]
    state: State<F>,
}

#[pin_project(project = Now)]
enum State<F> {
    /// The handler works.
    Calling(#[pin] F),
    /// It has answered or panicked; that, until it is told.
    Over(Option<Panicked>),
}

impl<F> CatchPanicFuture<F> {
    #[inline]
    pub(super) const fn calling(future: F) -> Self {
        Self {
            state: State::Calling(future),
        }
    }

    #[cold]
    pub(super) const fn panicked(panicked: Panicked) -> Self {
        Self {
            state: State::Over(Some(panicked)),
        }
    }
}

impl<F, B, E> Future for CatchPanicFuture<F>
where
    F: Future<Output = Result<Response<B>, E>>,
    E: Into<BoxError>,
{
    type Output = Result<Response<CatchPanicBody<B>>, BoxError>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.project().state;
        let panicked = match state.as_mut().project() {
            Now::Calling(future) => match caught(|| future.poll(cx)) {
                Ok(polled) => {
                    let done = |result: Result<_, E>| result.map_err(Into::into);
                    return polled.map(done).map_ok(|it| it.map(CatchPanicBody::new));
                }
                Err(panicked) => panicked,
            },
            Now::Over(panicked) => match panicked.take() {
                Some(panicked) => return Poll::Ready(Err(panicked.into())),
                None => return Poll::Pending, // polled after its end
            },
        };
        // It is not polled again, and a second panic in its drop would be one too many.
        let _dropped = caught(|| state.set(State::Over(None)));
        Poll::Ready(Err(panicked.into()))
    }
}

impl<F> fmt::Debug for CatchPanicFuture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CatchPanicFuture").finish_non_exhaustive()
    }
}
