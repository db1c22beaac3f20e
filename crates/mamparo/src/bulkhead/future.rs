//! One call: in the queue, then in its place.

use std::fmt;
use std::future::Future;
use std::mem;
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
pub struct BulkheadFuture<S: Service<Req>, P, Req> {
    #[pin]
    inner: GateFuture<S, Req>,
    // After the inner future: what that holds is given back before the place is.
    place: Option<Place<P>>,
    /// While there is no place.
    outside: Outside<P>,
}

enum Outside<P> {
    /// It waits for a place, and for nothing further in. Boxed, because it is large and rare.
    Queued(Pin<Box<Wait<P>>>),
    /// It is refused.
    Refused(BoxError),
    /// It is inside, or over.
    No,
}

impl<S: Service<Req>, P, Req> BulkheadFuture<S, P, Req> {
    #[inline]
    pub(super) const fn entered(place: Place<P>, inner: GateFuture<S, Req>) -> Self {
        Self {
            inner,
            place: Some(place),
            outside: Outside::No,
        }
    }

    #[inline]
    pub(super) const fn called(place: Place<P>, future: S::Future) -> Self {
        Self {
            inner: GateFuture::Called { future },
            place: Some(place),
            outside: Outside::No,
        }
    }

    pub(super) fn queued(wait: Wait<P>, inner: GateFuture<S, Req>) -> Self {
        Self {
            inner,
            place: None,
            outside: Outside::Queued(Box::pin(wait)),
        }
    }

    pub(super) const fn refused(error: BoxError) -> Self {
        Self {
            inner: GateFuture::None,
            place: None,
            outside: Outside::Refused(error),
        }
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
        let mut this = self.project();
        if this.place.is_none() {
            let entered = ready!(this.outside.poll_place(cx));
            *this.place = Some(entered.inspect_err(|_| this.inner.set(GateFuture::None))?);
        }
        let result = ready!(this.inner.as_mut().poll(cx));
        let Some(place) = this.place.take() else {
            return Poll::Pending; // not reached: there is one since the first line
        };
        Poll::Ready(match result {
            Ok(answer) => Ok(place.answered(answer)),
            Err(error) => Err(place.failed::<S::Response>(error.into())),
        })
    }
}

impl<P> Outside<P> {
    /// Waits for the place of a call that has none yet.
    #[cold]
    fn poll_place(&mut self, cx: &mut Context<'_>) -> Poll<Result<Place<P>, BoxError>> {
        let place = match self {
            Self::Queued(wait) => ready!(wait.as_mut().poll(cx)),
            Self::Refused(_) | Self::No => match mem::replace(self, Self::No) {
                Self::Refused(error) => Err(error),
                _ => return Poll::Pending,
            },
        };
        *self = Self::No;
        Poll::Ready(place)
    }
}

impl<S: Service<Req>, P, Req> fmt::Debug for BulkheadFuture<S, P, Req> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.outside {
            Outside::Queued(_) => "BulkheadFuture::Queued",
            Outside::Refused(_) => "BulkheadFuture::Refused",
            Outside::No if self.place.is_some() => "BulkheadFuture::Entered",
            Outside::No => "BulkheadFuture::Over",
        })
    }
}
