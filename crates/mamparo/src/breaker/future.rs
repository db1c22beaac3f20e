//! One call through a breaker.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use mamparo_core::gate::GateFuture;
use mamparo_core::{BoxError, Outcome};
use pin_project::pin_project;
use tower_service::Service;

use super::guard::{BreakerGuard, Open};

/// The future of a call that a breaker let through, or refused.
#[pin_project]
#[must_use = "futures do nothing unless polled"]
pub struct BreakerFuture<S: Service<Req>, P, K, Req>(#[pin] State<S, P, K, Req>);

/// In each, what runs is dropped before its place is given back: nothing of a call runs on once another may have that.
/// Where the layer is off, there is no place.
#[pin_project(project = Now)]
enum State<S: Service<Req>, P, K, Req> {
    /// The inner service was ready, and has been called.
    Called(#[pin] S::Future, Option<Open<P, K>>),
    /// The inner service was not ready as the call was let through.
    Waiting(#[pin] GateFuture<S, Req>, Option<Open<P, K>>),
    /// It was not let through, or that has been said.
    Refused(Option<BoxError>),
}

impl<S: Service<Req>, P, K, Req> BreakerFuture<S, P, K, Req> {
    #[inline]
    pub(super) const fn called(future: S::Future, open: Option<Open<P, K>>) -> Self {
        Self(State::Called(future, open))
    }

    pub(super) const fn waiting(future: GateFuture<S, Req>, open: Option<Open<P, K>>) -> Self {
        Self(State::Waiting(future, open))
    }

    #[inline]
    pub(super) const fn refused(error: BoxError) -> Self {
        Self(State::Refused(Some(error)))
    }
}

impl<S, P, K, Req> Future for BreakerFuture<S, P, K, Req>
where
    S: Service<Req>,
    S::Error: Into<BoxError>,
    P: Outcome<S::Response>,
    K: Send + Sync + 'static,
{
    type Output = Result<P::Out<BreakerGuard<P, K>>, BoxError>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().0.project() {
            Now::Called(future, open) => match ready!(future.poll(cx)) {
                Ok(answer) => Poll::Ready(Ok(answered(answer, open))),
                Err(error) => Poll::Ready(Err(failed::<S::Response, _, _>(error.into(), open))),
            },
            Now::Waiting(future, open) => Poll::Ready(waited(ready!(future.poll(cx)), open)),
            Now::Refused(error) => match error.take() {
                Some(error) => Poll::Ready(Err(error)),
                None => Poll::Pending, // not reached: a future is not polled after its end
            },
        }
    }
}

/// A call ended that had waited for the inner service.
#[cold]
fn waited<Res, E, P, K>(
    outcome: Result<Res, E>,
    open: &mut Option<Open<P, K>>,
) -> Result<P::Out<BreakerGuard<P, K>>, BoxError>
where
    E: Into<BoxError>,
    P: Outcome<Res>,
    K: Send + Sync + 'static,
{
    match outcome {
        Ok(answer) => Ok(answered(answer, open)),
        Err(error) => Err(failed::<Res, _, _>(error.into(), open)),
    }
}

/// Judges an answer, and ties the place to one that is not over yet.
#[inline]
fn answered<Res, P, K>(answer: Res, open: &mut Option<Open<P, K>>) -> P::Out<BreakerGuard<P, K>>
where
    P: Outcome<Res>,
    K: Send + Sync + 'static,
{
    let Some(open) = open else {
        return P::untied(answer);
    };
    open.answered();
    let head = open.shared.protocol.head(Ok(&answer));
    let guard = open.judge(head);
    open.shared.protocol.tie(answer, head, guard)
}

/// Judges an error.
#[cold]
fn failed<Res, P, K>(error: BoxError, open: &mut Option<Open<P, K>>) -> BoxError
where
    P: Outcome<Res>,
{
    if let Some(open) = open {
        open.answered();
        let head = open.shared.protocol.head(Err(&error));
        open.settle(head.verdict);
    }
    error
}

impl<S: Service<Req>, P, K, Req> fmt::Debug for BreakerFuture<S, P, K, Req> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.0 {
            State::Called(..) => "BreakerFuture::Called",
            State::Waiting(..) => "BreakerFuture::Waiting",
            State::Refused(_) => "BreakerFuture::Refused",
        })
    }
}
