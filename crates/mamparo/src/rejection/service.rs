//! The wiring of a server's answers to errors.

use std::convert::Infallible;
use std::fmt;
use std::task::{Context, Poll, ready};

use http::{Request, Response};
use mamparo_core::BoxError;
use mamparo_core::shard::Spread;
use tower_service::Service;

use super::answer::Form;
use super::layer::Shared;
use super::{RejectionBody, RejectionFuture};

/// Turns every error into a response; see the [module](super).
pub struct RejectionService<S> {
    inner: S,
    /// Why the inner service is not ready for good; answered when the request comes.
    failed: Option<BoxError>,
    shared: Spread<Shared>,
}

impl<S> RejectionService<S> {
    pub(super) const fn new(inner: S, shared: Spread<Shared>) -> Self {
        Self {
            inner,
            failed: None,
            shared,
        }
    }
}

impl<S, ReqBody, ResBody> Service<Request<ReqBody>> for RejectionService<S>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>>,
    S::Error: Into<BoxError>,
{
    type Response = Response<RejectionBody<ResBody>>;
    type Error = Infallible;
    type Future = RejectionFuture<S::Future>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        if self.failed.is_none() {
            let result = ready!(self.inner.poll_ready(cx));
            self.failed = result.err().map(Into::into);
        }
        Poll::Ready(Ok(()))
    }

    #[inline]
    fn call(&mut self, request: Request<ReqBody>) -> Self::Future {
        let form = Form::of(&request);
        let shared = self.shared.hold();
        match self.failed.take() {
            None => RejectionFuture::calling(self.inner.call(request), form, shared),
            Some(error) => RejectionFuture::failed(error, form, shared),
        }
    }
}

impl<S: Clone> Clone for RejectionService<S> {
    fn clone(&self) -> Self {
        Self::new(self.inner.clone(), self.shared.clone())
    }
}

impl<S: fmt::Debug> fmt::Debug for RejectionService<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RejectionService")
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}
