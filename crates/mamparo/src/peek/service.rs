//! The wiring of a peek.

use std::task::{Context, Poll};
use std::time::Duration;

use http::Response;
use http_body::Body;
use mamparo_core::BoxError;
use tower_service::Service;

use super::{PeekFuture, PeekedBody};

/// Shows a failure that a gRPC server tells in its trailers, before any data, in the head; see the [module](super).
#[derive(Clone, Copy, Debug)]
pub struct Peek<S> {
    inner: S,
    longest: Option<Duration>,
}

impl<S> Peek<S> {
    pub(super) const fn new(inner: S, longest: Option<Duration>) -> Self {
        Self { inner, longest }
    }
}

impl<S, B, Req> Service<Req> for Peek<S>
where
    S: Service<Req, Response = Response<B>>,
    S::Error: Into<BoxError>,
    B: Body,
    B::Error: Into<BoxError>,
{
    type Response = Response<PeekedBody<B>>;
    type Error = BoxError;
    type Future = PeekFuture<S::Future, B>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    #[inline]
    fn call(&mut self, request: Req) -> Self::Future {
        PeekFuture::new(self.inner.call(request), self.longest)
    }
}
