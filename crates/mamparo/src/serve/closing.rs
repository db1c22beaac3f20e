//! A server that stops asks its clients to open no request on the connections that they have.
//!
//! A connection of HTTP/1.1 that is idle is closed when the server stops, and a request that was sent at that moment is lost.
//! So, from when the server is not ready, each answer says that it is the connection's last. HTTP/2 says it with GOAWAY.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::header::CONNECTION;
use http::{HeaderValue, Request, Response, Version};
use mamparo_core::shard::{Held, Spread};
use pin_project::pin_project;
use tower_service::Service;

use super::Readiness;

const CLOSE: HeaderValue = HeaderValue::from_static("close");

/// Says of each answer that it is its connection's last, once the server stops.
#[derive(Clone)]
pub struct Closing<S> {
    inner: S,
    readiness: Spread<Option<Readiness>>,
}

impl<S> Closing<S> {
    pub(super) const fn new(inner: S, readiness: Spread<Option<Readiness>>) -> Self {
        Self { inner, readiness }
    }
}

impl<S, ReqBody, ResBody> Service<Request<ReqBody>> for Closing<S>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = ClosingFuture<S::Future>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    #[inline]
    fn call(&mut self, request: Request<ReqBody>) -> Self::Future {
        let is_http1 = request.version() <= Version::HTTP_11;
        let watched = is_http1 && self.readiness.is_some();
        ClosingFuture {
            readiness: watched.then(|| self.readiness.hold()),
            future: self.inner.call(request),
        }
    }
}

/// The future of a request whose answer may be its connection's last.
#[pin_project]
#[must_use = "futures do nothing unless polled"]
pub struct ClosingFuture<F> {
    #[pin]
    future: F,
    readiness: Option<Held<Option<Readiness>>>,
}

impl<F, B, E> Future for ClosingFuture<F>
where
    F: Future<Output = Result<Response<B>, E>>,
{
    type Output = F::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let mut result = ready!(this.future.poll(cx));
        let readiness = this.readiness.as_deref().and_then(Option::as_ref);
        if let Ok(response) = &mut result
            && readiness.is_some_and(Readiness::is_stopping)
        {
            // A header map that is full goes without.
            let _full = response.headers_mut().try_insert(CONNECTION, CLOSE);
        }
        Poll::Ready(result)
    }
}

impl<S: fmt::Debug> fmt::Debug for Closing<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Closing").field(&self.inner).finish()
    }
}

impl<F> fmt::Debug for ClosingFuture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClosingFuture").finish_non_exhaustive()
    }
}
