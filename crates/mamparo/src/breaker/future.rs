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
pub struct BreakerFuture<S: Service<Req>, P, K, Req> {
    // Dropped before the place is given back: nothing of the call runs on once another may have its place.
    #[pin]
    inner: GateFuture<S, Req>,
    place: Place<P, K>,
}

/// What a call got from the breaker.
enum Place<P, K> {
    Taken(Open<P, K>),
    Refused(BoxError),
    Over,
}

impl<S: Service<Req>, P, K, Req> BreakerFuture<S, P, K, Req> {
    #[inline]
    pub(super) const fn called(inner: GateFuture<S, Req>, open: Open<P, K>) -> Self {
        Self {
            inner,
            place: Place::Taken(open),
        }
    }

    #[inline]
    pub(super) const fn refused(error: BoxError) -> Self {
        Self {
            inner: GateFuture::None,
            place: Place::Refused(error),
        }
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
        let this = self.project();
        let Place::Taken(open) = this.place else {
            return this.place.refusal();
        };
        match ready!(this.inner.poll(cx)) {
            Ok(answer) => Poll::Ready(Ok(answered(answer, open))),
            Err(error) => Poll::Ready(Err(failed::<S::Response, _, _>(error.into(), open))),
        }
    }
}

impl<P, K> Place<P, K> {
    #[cold]
    fn refusal<T>(&mut self) -> Poll<Result<T, BoxError>> {
        match std::mem::replace(self, Self::Over) {
            Self::Refused(error) => Poll::Ready(Err(error)),
            Self::Taken(_) | Self::Over => Poll::Pending, // not reached: a future is not polled after its end
        }
    }
}

/// Judges an answer, and ties the place to one that is not over yet.
#[inline]
fn answered<Res, P, K>(answer: Res, open: &mut Open<P, K>) -> P::Out<BreakerGuard<P, K>>
where
    P: Outcome<Res>,
    K: Send + Sync + 'static,
{
    open.answered();
    let head = open.shared.protocol.head(Ok(&answer));
    let guard = open.judge(head);
    open.shared.protocol.tie(answer, head, guard)
}

/// Judges an error.
#[cold]
fn failed<Res, P, K>(error: BoxError, open: &mut Open<P, K>) -> BoxError
where
    P: Outcome<Res>,
{
    open.answered();
    let head = open.shared.protocol.head(Err(&error));
    open.settle(head.verdict);
    error
}

impl<S: Service<Req>, P, K, Req> fmt::Debug for BreakerFuture<S, P, K, Req> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.place {
            Place::Taken(_) => "BreakerFuture::Taken",
            Place::Refused(_) => "BreakerFuture::Refused",
            Place::Over => "BreakerFuture::Over",
        })
    }
}
