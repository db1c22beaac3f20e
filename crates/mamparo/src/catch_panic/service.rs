//! The wiring: the handler is called inside of a fence.

use std::fmt;
use std::task::{Context, Poll};

use http::{Request, Response};
use mamparo_core::BoxError;
use tower_service::Service;

use super::error::caught;
use super::{CatchPanicBody, CatchPanicFuture};

/// Turns a handler's panic into an error; see the [module](super).
#[derive(Clone)]
pub struct CatchPanic<S> {
    inner: S,
}

impl<S> CatchPanic<S> {
    pub(super) const fn new(inner: S) -> Self {
        Self { inner }
    }
}

impl<S, ReqBody, ResBody> Service<Request<ReqBody>> for CatchPanic<S>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>>,
    S::Error: Into<BoxError>,
{
    type Response = Response<CatchPanicBody<ResBody>>;
    type Error = BoxError;
    type Future = CatchPanicFuture<S::Future>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    #[inline]
    fn call(&mut self, request: Request<ReqBody>) -> Self::Future {
        match caught(|| self.inner.call(request)) {
            Ok(future) => CatchPanicFuture::calling(future),
            Err(panicked) => CatchPanicFuture::panicked(panicked),
        }
    }
}

impl<S: fmt::Debug> fmt::Debug for CatchPanic<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CatchPanic").field(&self.inner).finish()
    }
}
