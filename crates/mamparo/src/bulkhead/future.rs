//! One call: in the queue, then in its place.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use mamparo_core::gate::GateFuture;
use mamparo_core::{BoxError, Outcome};
use pin_project::pin_project;
use tower_service::Service;

use super::Permit;
use super::permit::Place;
use super::wait::Wait;

/// The future of a call through a bulkhead.
#[pin_project]
#[must_use = "futures do nothing unless polled"]
pub struct BulkheadFuture<S: Service<Req>, P, Req>(#[pin] State<S, P, Req>);

/// In each, the inner future is dropped before the place: what it holds is given back first. Where the layer is off,
/// there is no place.
#[pin_project(project = Now)]
enum State<S: Service<Req>, P, Req> {
    /// The call was let in, and the inner service was ready: it has been called.
    Called(#[pin] S::Future, Option<Place<P>>),
    /// The call was let in, and the inner service was not ready.
    Entered(#[pin] GateFuture<S, Req>, Option<Place<P>>),
    /// It waits for a place, and for nothing further in. Boxed, because it is large and rare.
    Queued(Option<Boxed<S, P, Req>>),
    /// It is refused, or that has been said.
    Refused(Option<BoxError>),
}

type Boxed<S, P, Req> = Pin<Box<Queued<S, P, Req>>>;

/// A call that begins when it has its place.
#[pin_project]
struct Queued<S: Service<Req>, P, Req> {
    #[pin]
    inner: GateFuture<S, Req>,
    #[pin]
    wait: Wait<P>,
    place: Option<Place<P>>,
}

impl<S: Service<Req>, P, Req> BulkheadFuture<S, P, Req> {
    #[inline]
    pub(super) const fn called(future: S::Future, place: Option<Place<P>>) -> Self {
        Self(State::Called(future, place))
    }

    pub(super) const fn entered(inner: GateFuture<S, Req>, place: Option<Place<P>>) -> Self {
        Self(State::Entered(inner, place))
    }

    pub(super) fn queued(inner: GateFuture<S, Req>, wait: Wait<P>) -> Self {
        Self(State::Queued(Some(Box::pin(Queued {
            inner,
            wait,
            place: None,
        }))))
    }

    pub(super) const fn refused(error: BoxError) -> Self {
        Self(State::Refused(Some(error)))
    }
}

impl<S, P, Req> Future for BulkheadFuture<S, P, Req>
where
    S: Service<Req>,
    S::Error: Into<BoxError>,
    P: Outcome<S::Response>,
{
    type Output = Result<P::Out<Permit<P>>, BoxError>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().0.project() {
            Now::Called(future, place) => ended(ready!(future.poll(cx)), place),
            Now::Entered(inner, place) => late(ready!(inner.poll(cx)), place),
            Now::Queued(queued) => poll_queued(queued, cx),
            Now::Refused(error) => match error.take() {
                Some(error) => Poll::Ready(Err(error)),
                None => Poll::Pending, // not reached: a future is not polled after its end
            },
        }
    }
}

/// A call ended; the place is kept as long as its answer is not over.
///
/// Always inline: the answer is moved once less that way.
#[inline(always)]
fn ended<Res, E, P>(
    result: Result<Res, E>,
    place: &mut Option<Place<P>>,
) -> Poll<Result<P::Out<Permit<P>>, BoxError>>
where
    E: Into<BoxError>,
    P: Outcome<Res>,
{
    let Some(place) = place.take() else {
        return Poll::Ready(result.map(P::untied).map_err(Into::into));
    };
    Poll::Ready(match result {
        Ok(answer) => Ok(place.answered(answer)),
        Err(error) => Err(place.failed::<Res>(error.into())),
    })
}

/// A call ended that had to wait.
#[cold]
fn late<Res, E, P>(
    result: Result<Res, E>,
    place: &mut Option<Place<P>>,
) -> Poll<Result<P::Out<Permit<P>>, BoxError>>
where
    E: Into<BoxError>,
    P: Outcome<Res>,
{
    ended(result, place)
}

#[cold]
fn poll_queued<S, P, Req>(
    queued: &mut Option<Boxed<S, P, Req>>,
    cx: &mut Context<'_>,
) -> Poll<Result<P::Out<Permit<P>>, BoxError>>
where
    S: Service<Req>,
    S::Error: Into<BoxError>,
    P: Outcome<S::Response>,
{
    let Some(call) = queued else {
        return Poll::Pending; // not reached: a future is not polled after its end
    };
    let now = call.as_mut().project();
    if now.place.is_none() {
        match ready!(now.wait.poll(cx)) {
            Ok(place) => *now.place = Some(place),
            Err(error) => {
                *queued = None;
                return Poll::Ready(Err(error));
            }
        }
    }
    ended(ready!(now.inner.poll(cx)), now.place)
}

impl<S: Service<Req>, P, Req> fmt::Debug for BulkheadFuture<S, P, Req> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.0 {
            State::Called(..) => "BulkheadFuture::Called",
            State::Entered(..) => "BulkheadFuture::Entered",
            State::Queued(_) => "BulkheadFuture::Queued",
            State::Refused(_) => "BulkheadFuture::Refused",
        })
    }
}
