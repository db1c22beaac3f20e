//! One operation with its key.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use mamparo_core::{BoxError, Scope};
use pin_project::pin_project;

/// The future of an operation with its key in the call's scope.
#[pin_project]
#[must_use = "futures do nothing unless polled"]
pub struct IdempotencyKeyFuture<F> {
    #[pin]
    state: State<F>,
    /// Boxed, because it is large and only a keyed request has one.
    scope: Option<Box<Scope>>,
}

#[pin_project(project = StateProjected)]
enum State<F> {
    Sent(#[pin] F),
    /// The key could not be written.
    Failed(Option<BoxError>),
}

impl<F> IdempotencyKeyFuture<F> {
    #[inline]
    pub(super) const fn sent(future: F, scope: Option<Box<Scope>>) -> Self {
        Self {
            state: State::Sent(future),
            scope,
        }
    }

    pub(super) const fn failed(error: BoxError) -> Self {
        Self {
            state: State::Failed(Some(error)),
            scope: None,
        }
    }
}

impl<F, Res, E> Future for IdempotencyKeyFuture<F>
where
    F: Future<Output = Result<Res, E>>,
    E: Into<BoxError>,
{
    type Output = Result<Res, BoxError>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let future = match this.state.project() {
            StateProjected::Sent(future) => future,
            StateProjected::Failed(error) => {
                return error
                    .take()
                    .map_or(Poll::Pending, |error| Poll::Ready(Err(error)));
            }
        };
        match this.scope {
            Some(scope) => scope.enter(|| future.poll(cx)),
            None => future.poll(cx),
        }
        .map_err(Into::into)
    }
}

impl<F> fmt::Debug for IdempotencyKeyFuture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdempotencyKeyFuture")
            .finish_non_exhaustive()
    }
}
