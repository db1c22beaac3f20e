//! hyper-util's pooled client.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use ::http::{Request, Response};
use ::hyper::body::Incoming;
use http_body::Body;
use hyper_util::client::legacy::connect::Connect;
use hyper_util::client::legacy::{Client, ResponseFuture};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use mamparo_core::BoxError;
use pin_project::pin_project;
use tower_layer::{Identity, Layer};
use tower_service::Service;

use super::proof::prove;
use crate::connect_timeout::ConnectTimeout;
use crate::replay::ReplayBody;
use crate::stack::Stack;

/// The recommended stack around hyper-util's client: what [`hyper()`] returns.
pub type HyperClient<C, B, O = Identity, A = Identity, F = Identity> =
    <Stack<O, A, F> as Layer<HyperTransport<ConnectTimeout<C>, ReplayBody<B>>>>::Service;

/// Builds the recommended stack around a pooled client over a connector.
///
/// ```
/// use bytes::Bytes;
/// use http_body_util::Full;
/// use hyper_util::client::legacy::connect::HttpConnector;
/// use mamparo::client::HyperClient;
/// use mamparo::stack::Stack;
///
/// let catalog: HyperClient<HttpConnector, Full<Bytes>> =
///     mamparo::client::hyper(HttpConnector::new(), &Stack::http("catalog"));
/// # let _ = catalog;
/// ```
pub fn hyper<C, B, O, A, F>(connector: C, stack: &Stack<O, A, F>) -> HyperClient<C, B, O, A, F>
where
    ConnectTimeout<C>: Connect + Clone,
    B: Body + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
    Stack<O, A, F>: Layer<HyperTransport<ConnectTimeout<C>, ReplayBody<B>>>,
{
    let connector = stack.connect().layer(connector);
    let client = Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .build(connector);
    stack.layer(HyperTransport::new(client))
}

/// Sends requests through hyper-util's client, and says what its errors prove.
pub struct HyperTransport<C, B> {
    /// Shared, because a client is large, and a retry keeps a clone of its inner service for every operation.
    client: Arc<Client<C, B>>,
}

impl<C, B> HyperTransport<C, B> {
    /// Stands on a client.
    pub fn new(client: Client<C, B>) -> Self {
        Self {
            client: Arc::new(client),
        }
    }
}

impl<C, B> Service<Request<B>> for HyperTransport<C, B>
where
    C: Connect + Clone + Send + Sync + 'static,
    B: Body + Send + Unpin + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    type Response = Response<Incoming>;
    type Error = BoxError;
    type Future = HyperFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> HyperFuture {
        HyperFuture {
            future: self.client.request(request),
        }
    }
}

/// The future of one request through hyper-util's client.
#[pin_project]
#[must_use = "futures do nothing unless polled"]
pub struct HyperFuture {
    #[pin]
    future: ResponseFuture,
}

impl Future for HyperFuture {
    type Output = Result<Response<Incoming>, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.project().future.poll(cx).map_err(|error| {
            let connect = error.is_connect();
            prove(error, connect).into()
        })
    }
}

impl fmt::Debug for HyperFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HyperFuture").finish_non_exhaustive()
    }
}

impl<C, B> Clone for HyperTransport<C, B> {
    fn clone(&self) -> Self {
        Self {
            client: Arc::clone(&self.client),
        }
    }
}

impl<C, B> fmt::Debug for HyperTransport<C, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HyperTransport").finish_non_exhaustive()
    }
}
