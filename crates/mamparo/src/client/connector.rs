//! A layer around a connector, inside a client.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tower_layer::Layer;
use tower_service::Service;

/// Makes any layer fit to stand around the connector of hyper-util's client, or of tonic's channel.
///
/// Both ask for futures that can be moved, and the layers' can't: here they are boxed, once per new connection. What a
/// layer refuses there reaches the caller as its [`Rejection`](mamparo_core::Rejection), and is not taken for a failure to connect: it
/// is neither sent again nor counted against the dependency. What it bounds are connections that are being made, not those that are open.
///
/// reqwest boxes by itself: give it the layer as it is, with `ClientBuilder::connector_layer`.
///
/// ```
/// use bytes::Bytes;
/// use http_body_util::Full;
/// use hyper_util::client::legacy::Client;
/// use hyper_util::client::legacy::connect::HttpConnector;
/// use hyper_util::rt::TokioExecutor;
/// use mamparo::client::connector;
/// use mamparo::connect_timeout::ConnectTimeoutLayer;
/// use tower::ServiceBuilder;
///
/// let connector = ServiceBuilder::new()
///     .layer(connector(ConnectTimeoutLayer::default()))
///     .service(HttpConnector::new());
/// let client: Client<_, Full<Bytes>> = Client::builder(TokioExecutor::new()).build(connector);
/// # let _ = client;
/// ```
#[must_use]
pub const fn connector<L>(layer: L) -> ConnectorLayer<L> {
    ConnectorLayer { layer }
}

/// A layer that is fit to stand around a connector; what [`connector()`] returns.
#[derive(Clone, Copy, Debug)]
pub struct ConnectorLayer<L> {
    layer: L,
}

impl<S, L: Layer<S>> Layer<S> for ConnectorLayer<L> {
    type Service = Connector<L::Service>;

    fn layer(&self, inner: S) -> Self::Service {
        Connector {
            service: self.layer.layer(inner),
        }
    }
}

/// A connector behind a layer, whose futures are boxed.
#[derive(Clone, Copy, Debug)]
pub struct Connector<S> {
    service: S,
}

impl<S, Req> Service<Req> for Connector<S>
where
    S: Service<Req>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = ConnectorFuture<S::Response, S::Error>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(cx)
    }

    fn call(&mut self, request: Req) -> Self::Future {
        ConnectorFuture(Box::pin(self.service.call(request)))
    }
}

/// The future of one connection that is being made.
#[must_use = "futures do nothing unless polled"]
pub struct ConnectorFuture<T, E>(Pin<Box<dyn Future<Output = Result<T, E>> + Send>>);

impl<T, E> Future for ConnectorFuture<T, E> {
    type Output = Result<T, E>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.as_mut().poll(cx)
    }
}

impl<T, E> fmt::Debug for ConnectorFuture<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectorFuture").finish_non_exhaustive()
    }
}
