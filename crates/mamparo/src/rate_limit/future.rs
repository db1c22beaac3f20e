//! One call, which passes, waits for its turn, or is refused.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use mamparo_core::BoxError;
use mamparo_core::gate::GateFuture;
use pin_project::pin_project;
use tower_service::Service;

use super::ReadsLimit;
use super::bucket::Unsent;
use super::limit::Limit;
use super::waiting::{Passed, Waiting};

/// The future of a call under a rate limit.
#[pin_project]
#[must_use = "futures do nothing unless polled"]
pub struct RateLimitFuture<S: Service<Req>, C, L, Req>(#[pin] State<S, C, L, Req>);

#[pin_project(project = Now)]
enum State<S: Service<Req>, C, L, Req> {
    /// It passed and was sent, and nothing else is to be done for it.
    Called(#[pin] S::Future),
    /// It passed, and something is to be done when it is sent or answered.
    Attended(#[pin] Attended<S, C, L, Req>),
    /// It waits for its turn.
    Waiting(Box<Waiting<S, C, L, Req>>),
    /// It was refused; its rejection, until it is told.
    Refused(Option<BoxError>),
}

/// A call that passed, whose inner service was not ready, or whose answer may say something of the limit.
#[pin_project]
struct Attended<S: Service<Req>, C, L, Req> {
    #[pin]
    future: GateFuture<S, Req>,
    /// Until the inner service is called. Boxed, because it is large and rare, and a future is moved before it is polled.
    unsent: Option<Box<Unsent>>,
    limit: Limit<C, L>,
}

impl<S: Service<Req>, C, L, Req> RateLimitFuture<S, C, L, Req> {
    #[inline]
    pub(super) const fn called(future: S::Future) -> Self {
        Self(State::Called(future))
    }

    /// It passed; `unsent` gives back what it took unless the inner service is called.
    #[inline]
    pub(super) const fn attended(
        future: GateFuture<S, Req>,
        unsent: Option<Box<Unsent>>,
        limit: Limit<C, L>,
    ) -> Self {
        Self(State::Attended(Attended {
            future,
            unsent,
            limit,
        }))
    }

    pub(super) const fn waits(waiting: Box<Waiting<S, C, L, Req>>) -> Self {
        Self(State::Waiting(waiting))
    }

    pub(super) const fn refused(rejection: BoxError) -> Self {
        Self(State::Refused(Some(rejection)))
    }
}

impl<S: Service<Req>, C, L, Req> Attended<S, C, L, Req> {
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<S::Response, S::Error>>
    where
        L: ReadsLimit<S::Response>,
    {
        let mut this = self.project();
        let polled = this.future.as_mut().poll(cx);
        if this.future.is_called()
            && let Some(unsent) = this.unsent.take()
        {
            unsent.sent();
        }
        let mut answer = ready!(polled)?;
        this.limit.attend(&mut answer);
        Poll::Ready(Ok(answer))
    }
}

impl<S, C, L, Req> Future for RateLimitFuture<S, C, L, Req>
where
    S: Service<Req> + Clone,
    S::Error: Into<BoxError>,
    L: ReadsLimit<S::Response>,
{
    type Output = Result<S::Response, BoxError>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.project().0;
        loop {
            match state.as_mut().project() {
                Now::Called(future) => return future.poll(cx).map_err(Into::into),
                Now::Attended(call) => return call.poll(cx).map_err(Into::into),
                Now::Waiting(waiting) => {
                    let Passed {
                        future,
                        unsent,
                        limit,
                    } = ready!(waiting.poll(cx))?;
                    state.set(State::Attended(Attended {
                        future,
                        unsent,
                        limit,
                    }));
                }
                Now::Refused(rejection) => {
                    return match rejection.take() {
                        Some(rejection) => Poll::Ready(Err(rejection)),
                        None => Poll::Pending, // polled after its end
                    };
                }
            }
        }
    }
}

impl<S: Service<Req>, C, L, Req> fmt::Debug for RateLimitFuture<S, C, L, Req> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            State::Called(_) | State::Attended(_) => "RateLimitFuture::Passed",
            State::Waiting(_) => "RateLimitFuture::Waiting",
            State::Refused(_) => "RateLimitFuture::Refused",
        })
    }
}
