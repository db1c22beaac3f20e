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
use super::waiting::Waiting;

/// The future of a call under a rate limit.
#[pin_project]
#[must_use = "futures do nothing unless polled"]
pub struct RateLimitFuture<S: Service<Req>, C, L, Req> {
    #[pin]
    state: State<S, C, L, Req>,
    /// Until the inner service is called, where it was not ready.
    unsent: Option<Box<Unsent>>,
    /// Until the answer is there, where that may say what is left of the dependency's own limit.
    listening: Option<Limit<C, L>>,
}

#[pin_project(project = Now)]
enum State<S: Service<Req>, C, L, Req> {
    /// It passed.
    Called(#[pin] GateFuture<S, Req>),
    /// It waits for its turn.
    Waiting(Box<Waiting<S, C, L, Req>>),
    /// It was refused; its rejection, until it is told.
    Refused(Option<BoxError>),
}

impl<S: Service<Req>, C, L, Req> RateLimitFuture<S, C, L, Req> {
    #[inline]
    pub(super) const fn passed(
        future: GateFuture<S, Req>,
        unsent: Option<Box<Unsent>>,
        listening: Option<Limit<C, L>>,
    ) -> Self {
        Self {
            state: State::Called(future),
            unsent,
            listening,
        }
    }

    pub(super) const fn waits(waiting: Box<Waiting<S, C, L, Req>>) -> Self {
        Self {
            state: State::Waiting(waiting),
            unsent: None,
            listening: None,
        }
    }

    pub(super) const fn refused(rejection: BoxError) -> Self {
        Self {
            state: State::Refused(Some(rejection)),
            unsent: None,
            listening: None,
        }
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
        let mut this = self.project();
        loop {
            match this.state.as_mut().project() {
                Now::Called(mut future) => {
                    let polled = future.as_mut().poll(cx);
                    if future.is_called()
                        && let Some(unsent) = this.unsent.take()
                    {
                        unsent.sent();
                    }
                    let answer = ready!(polled).map_err(Into::into)?;
                    if let Some(listening) = this.listening {
                        listening.hear(&answer);
                    }
                    return Poll::Ready(Ok(answer));
                }
                Now::Waiting(waiting) => {
                    let passed = ready!(waiting.poll(cx))?;
                    *this.unsent = Some(passed.unsent);
                    *this.listening = passed.limit.listening();
                    this.state.set(State::Called(passed.future));
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
        f.write_str(match self.state {
            State::Called(_) => "RateLimitFuture::Called",
            State::Waiting(_) => "RateLimitFuture::Waiting",
            State::Refused(_) => "RateLimitFuture::Refused",
        })
    }
}
