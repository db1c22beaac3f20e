//! Readiness for layers that may refuse a call.

use std::fmt;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project::pin_project;
use tower_service::Service;

/// An inner service behind a layer that is always ready: admission happens in `call`.
///
/// The inner service is polled when it can be; if it was ready it is called directly, with no clone. If it
/// was not, the call's future takes that instance and drives it, so that the wait counts against the
/// deadline. A clone is not ready, and nothing scarce is held by a gate that is never called
/// but the inner service's own slot, which its clone does not share.
pub struct Gate<S> {
    service: S,
    ready: bool,
    /// Whether it was polled and was not ready: it may then stand in a queue, and its turn may come unseen.
    waits: bool,
}

impl<S> Gate<S> {
    /// Puts a gate before a service.
    pub const fn new(service: S) -> Self {
        Self {
            service,
            ready: false,
            waits: false,
        }
    }

    /// Polls the inner service unless it is known to be ready; ready also when the inner is not.
    ///
    /// # Errors
    ///
    /// The inner service's own error.
    #[inline]
    pub fn poll_ready<Req>(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>>
    where
        S: Service<Req>,
    {
        if !self.ready {
            match self.service.poll_ready(cx) {
                Poll::Ready(result) => {
                    result?;
                    self.ready = true;
                }
                Poll::Pending => self.waits = true,
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Gives up what the inner service may keep for a call that is refused: a slot, or a place in its queue.
    #[inline]
    pub fn release(&mut self)
    where
        S: Clone,
    {
        if self.ready || self.waits {
            *self = self.clone();
        }
    }

    /// Polls the inner service unless it is known to be ready; pending as long as it is.
    ///
    /// # Errors
    ///
    /// The inner service's own error.
    pub fn poll_inner<Req>(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>>
    where
        S: Service<Req>,
    {
        ready!(self.poll_ready(cx))?;
        if self.ready {
            Poll::Ready(Ok(()))
        } else {
            Poll::Pending
        }
    }

    /// Returns the inner service, which must now be called, if it was polled ready.
    #[inline]
    pub fn ready(&mut self) -> Option<&mut S> {
        mem::take(&mut self.ready).then_some(&mut self.service)
    }

    /// Makes a call that begins later, when its future is polled: that future makes an instance of its own ready.
    ///
    /// Until then it holds nothing of the inner service, neither a slot nor a place in its queue.
    pub fn defer<Req>(&self, request: Req) -> GateFuture<S, Req>
    where
        S: Service<Req> + Clone,
    {
        GateFuture::waiting(self.service.clone(), request)
    }

    /// Tells whether the inner service is known to be ready.
    #[must_use]
    #[inline]
    pub const fn is_ready(&self) -> bool {
        self.ready
    }

    /// Calls the inner service, now if it is ready and else as soon as it is.
    #[inline]
    pub fn call<Req>(&mut self, request: Req) -> GateFuture<S, Req>
    where
        S: Service<Req> + Clone,
    {
        if mem::take(&mut self.ready) {
            return GateFuture::Called {
                future: self.service.call(request),
            };
        }
        self.take_along(request)
    }

    /// The instance that was polled keeps its place in the inner service's queue; the clone stays here.
    #[cold]
    fn take_along<Req>(&mut self, request: Req) -> GateFuture<S, Req>
    where
        S: Service<Req> + Clone,
    {
        let clone = self.clone();
        GateFuture::waiting(mem::replace(self, clone).service, request)
    }
}

impl<S: Clone> Clone for Gate<S> {
    fn clone(&self) -> Self {
        Self::new(self.service.clone())
    }
}

impl<S: fmt::Debug> fmt::Debug for Gate<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate")
            .field("service", &self.service)
            .field("ready", &self.ready)
            .finish()
    }
}

/// A call whose inner service is not ready yet.
pub struct Waiting<S, Req> {
    /// The instance whose readiness is waited for.
    service: S,
    /// Until it is called.
    request: Option<Req>,
}

impl<S, Req> fmt::Debug for Waiting<S, Req> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiting").finish_non_exhaustive()
    }
}

/// The future of a call through a [`Gate`].
#[pin_project(project = State)]
#[must_use = "futures do nothing unless polled"]
#[expect(
    clippy::exhaustive_enums,
    reason = "its states are matched by the gate alone"
)]
pub enum GateFuture<S: Service<Req>, Req> {
    /// The inner service is not ready yet.
    Waiting {
        /// What is waited with. Boxed, because it is large and rare, and a future is moved before it is polled.
        call: Box<Waiting<S, Req>>,
    },
    /// The inner service has been called.
    Called {
        /// Its future.
        #[pin]
        future: S::Future,
    },
    /// There is no call: it was refused, or is dropped.
    None,
}

impl<S: Service<Req>, Req> GateFuture<S, Req> {
    fn waiting(service: S, request: Req) -> Self {
        let request = Some(request);
        Self::Waiting {
            call: Box::new(Waiting { service, request }),
        }
    }

    /// Tells whether the inner service has been called: before that, nothing was sent.
    #[must_use]
    #[inline]
    pub const fn is_called(&self) -> bool {
        matches!(self, Self::Called { .. })
    }
}

impl<S: Service<Req>, Req> Future for GateFuture<S, Req> {
    type Output = Result<S::Response, S::Error>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.as_mut().project() {
            State::Called { future } => future.poll(cx),
            State::Waiting { .. } | State::None => self.poll_uncalled(cx),
        }
    }
}

impl<S: Service<Req>, Req> GateFuture<S, Req> {
    /// Drives the inner service to readiness, and calls it.
    #[cold]
    fn poll_uncalled(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<S::Response, S::Error>> {
        let State::Waiting { call } = self.as_mut().project() else {
            return Poll::Pending;
        };
        ready!(call.service.poll_ready(cx))?;
        let Some(request) = call.request.take() else {
            return Poll::Pending; // not reached: the state changes as the request is taken
        };
        let future = call.service.call(request);
        self.set(Self::Called { future });
        self.poll(cx)
    }
}

impl<S: Service<Req>, Req> fmt::Debug for GateFuture<S, Req> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Waiting { .. } => "GateFuture::Waiting",
            Self::Called { .. } => "GateFuture::Called",
            Self::None => "GateFuture::None",
        })
    }
}
