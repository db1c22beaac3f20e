//! The requests, and the services that answer them.

use std::error::Error;
use std::fmt;
use std::future::{Future, ready};
use std::hint::black_box;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Response, header};
use http_body_util::Full;
use tower::Service;
use tower::util::{MapRequest, service_fn};

pub(crate) type Body = Full<Bytes>;
pub(crate) type Answer = Result<Response<Body>, Failure>;

/// An error that no case meets; `Infallible` would let the compiler take out what handles it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Failure;

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("failed")
    }
}

impl Error for Failure {}

/// A service that peers can be put around: whatever answers `Req` with [`Answer`].
pub(crate) trait Inner<Req>:
    Service<Req, Response = Response<Body>, Error = Failure, Future = Self::Answering>
    + Clone
    + Send
    + Sync
    + 'static
{
    type Answering: Future<Output = Answer> + Send + 'static;
}

impl<S, F, Req> Inner<Req> for S
where
    S: Service<Req, Response = Response<Body>, Error = Failure, Future = F>
        + Clone
        + Send
        + Sync
        + 'static,
    F: Future<Output = Answer> + Send + 'static,
{
    type Answering = F;
}

/// Whatever sends requests: an [`Inner`], or a client.
pub(crate) trait Sends:
    Service<Request<Body>, Response: Send, Error = Self::Failed, Future = Self::Sending>
    + Clone
    + Send
    + Sync
    + 'static
{
    type Failed: Error + Send + Sync + 'static;
    type Sending: Future<Output = Result<Self::Response, Self::Failed>> + Send + 'static;
}

impl<S, E, F> Sends for S
where
    S: Service<Request<Body>, Response: Send, Error = E, Future = F>
        + Clone
        + Send
        + Sync
        + 'static,
    E: Error + Send + Sync + 'static,
    F: Future<Output = Result<S::Response, E>> + Send + 'static,
{
    type Failed = E;
    type Sending = F;
}

/// A GET without a header or a body.
pub(crate) fn small() -> Request<Body> {
    Request::new(Body::default())
}

/// A GET with the headers that a client usually sends, and no body.
pub(crate) fn rich() -> Request<Body> {
    const HEADERS: [(HeaderName, &str); 8] = [
        (header::HOST, "catalog.internal"),
        (header::USER_AGENT, "bench/1.0"),
        (header::ACCEPT, "application/json"),
        (header::ACCEPT_ENCODING, "gzip, br"),
        (
            header::AUTHORIZATION,
            "Bearer abcdefghijklmnopqrstuvwxyz0123456789",
        ),
        (header::CONTENT_TYPE, "application/json"),
        (
            header::IF_NONE_MATCH,
            "\"0af76519-16cd-43dd-8448-eb211c80319c\"",
        ),
        (
            HeaderName::from_static("x-request-id"),
            "0af76519-16cd-43dd-8448-eb211c80319c",
        ),
    ];
    let mut request = small();
    for (name, value) in HEADERS {
        let value = HeaderValue::from_static(value);
        request.headers_mut().insert(name, value);
    }
    request
}

/// Copies each request before it calls `inner`, as a retry must.
pub(crate) fn copies<S: Inner<Request<Body>>>(
    inner: S,
) -> impl Service<Request<Body>, Response = Response<Body>, Error = Failure, Future: Sized> {
    MapRequest::new(inner, |request: Request<Body>| {
        black_box(request.clone());
        request
    })
}

/// Answers at once.
pub(crate) fn at_once<B: Send + 'static>() -> impl Inner<Request<B>> {
    service_fn(|_: Request<B>| ready(Ok(Response::new(Body::default()))))
}

/// Refuses at once, by hand: what a rejection costs at the least, the request made and dropped included.
pub(crate) fn refuses() -> impl Inner<Request<Body>> {
    service_fn(|_: Request<Body>| ready(black_box(Err(Failure))))
}

/// Answers at once; every tenth time, with a failure.
pub(crate) fn tenth_failing() -> impl Inner<Request<Body>> {
    let mut calls = 0_u32;
    service_fn(move |_: Request<Body>| {
        calls = calls.wrapping_add(1);
        ready(match calls % 10 {
            0 => Err(Failure),
            _ => Ok(Response::new(Body::default())),
        })
    })
}

/// Answers at the second poll, as whatever waits for a network does.
pub(crate) fn later<B: Send + 'static>() -> impl Inner<Request<B>> {
    service_fn(|_: Request<B>| Later { polled: false })
}

/// Pending once.
pub(crate) struct Later {
    polled: bool,
}

impl Future for Later {
    type Output = Answer;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Answer> {
        if std::mem::replace(&mut self.polled, true) {
            Poll::Ready(Ok(Response::new(Body::default())))
        } else {
            Poll::Pending
        }
    }
}
