//! Layers around the connector: what they refuse reaches the caller as what it is.

use std::future::{Ready, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::Duration;

use ::http::{Request, Uri};
use bytes::Bytes;
use http_body_util::Full;
use hyper_util::client::legacy::connect::HttpConnector;
use mamparo_core::http::Http;
use mamparo_core::{BoxError, Classify, Dependency, Plain, Reason, Rejection, Verdict};
use mamparo_testkit::server::{Reply, Server};
use tower::{Layer, Service, ServiceExt};
use tower_layer::Identity;

use super::adapters::full_listener;
use crate::breaker::{BreakerLayer, BreakerPolicy};
use crate::bulkhead::{BulkheadLayer, BulkheadPolicy};
use crate::client::*;
use crate::connect_timeout::ConnectTimeoutLayer;
use crate::rate_limit::{RateLimitLayer, RateLimitPolicy};
use crate::retry::RetryPolicy;
use crate::stack::Stack;

/// Refuses every connection, and counts them.
#[derive(Clone, Debug, Default)]
struct Refusing(Arc<AtomicUsize>);

impl<S> Layer<S> for Refusing {
    type Service = Refused<S>;

    fn layer(&self, inner: S) -> Refused<S> {
        Refused(inner, self.clone())
    }
}

#[derive(Clone, Debug)]
struct Refused<S>(S, Refusing);

impl<S: Service<Req>, Req> Service<Req> for Refused<S> {
    type Response = S::Response;
    type Error = BoxError;
    type Future = Ready<Result<S::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Req) -> Self::Future {
        self.1.0.fetch_add(1, Relaxed);
        let rejection = Rejection::refused(Reason::BreakerOpen, Dependency::named("peer"));
        ready(Err(rejection
            .with_retry_after(Duration::from_secs(3))
            .into()))
    }
}

fn stack() -> Stack {
    Stack::http("peer").retry(RetryPolicy::default())
}

fn post(url: &str) -> Request<Full<Bytes>> {
    Request::post(url).body(Full::from("a body")).unwrap()
}

/// Sends a request through the whole stack of a client whose connector is refused; returns what its caller gets.
async fn refused_by_hyper(url: &str, refusing: &Refusing) -> BoxError {
    let connector = connector(refusing.clone()).layer(HttpConnector::new());
    let sent = hyper(connector, &stack()).oneshot(post(url)).await;
    sent.err().unwrap()
}

async fn refused_by_reqwest(url: &str, refusing: &Refusing) -> BoxError {
    let builder = ::reqwest::Client::builder().connector_layer(refusing.clone());
    let client = reqwest(builder, &stack()).unwrap();
    client.oneshot(post(url)).await.err().unwrap()
}

/// A connect failure would be sent again, for any method, and would count against the dependency.
#[tokio::test]
async fn a_rejection_made_in_a_connector_is_neither_sent_again_nor_the_dependencys_failure() {
    let server = Server::start(Reply::ok()).await;
    let url = server.url("/");
    let refusing = Refusing::default();
    for error in [
        refused_by_hyper(&url, &refusing).await,
        refused_by_reqwest(&url, &refusing).await,
    ] {
        let rejection = Rejection::of(&*error).expect("it is found in the client's error");
        assert_eq!(rejection.reason(), Reason::BreakerOpen);
        assert_eq!(rejection.retry_after(), Some(Duration::from_secs(3)));
        assert!(!rejection.sent());
        let verdict = Classify::<::http::Response<()>>::head(&Http::default(), Err(&error)).verdict;
        assert_eq!(verdict, Verdict::IGNORED);
    }
    assert_eq!(
        refusing.0.load(Relaxed),
        2,
        "one connection was asked for by each"
    );
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_layer_around_a_connector_lets_connections_be_made() {
    let server = Server::start(Reply::ok()).await;
    let connector = connector(ConnectTimeoutLayer::default()).layer(HttpConnector::new());
    let client = hyper(connector, &stack());
    client.oneshot(post(&server.url("/"))).await.unwrap();
    assert_eq!((server.connections(), server.requests().len()), (1, 1));
}

/// Sends a request through each client with a fresh layer around its connector, then another over a connection of its own;
/// returns what the second one ends with.
macro_rules! second_of_both {
    ($layer:expr, $url:expr) => {{
        let inside = connector($layer).layer(HttpConnector::new());
        let hyper = hyper(inside, &stack());
        drop(hyper.clone().oneshot(post($url)).await);
        let builder = ::reqwest::Client::builder().connector_layer($layer);
        let reqwest = reqwest(builder, &stack()).unwrap();
        drop(reqwest.clone().oneshot(post($url)).await);
        [
            hyper.oneshot(post($url)).await.err().unwrap(),
            reqwest.oneshot(post($url)).await.err().unwrap(),
        ]
    }};
}

#[tokio::test]
async fn a_rate_limit_around_a_connector_limits_new_connections() {
    let server = Server::start(Reply::ok().last()).await;
    let hourly = RateLimitPolicy::per(Duration::from_secs(3_600), 1);
    let hourly = hourly.build().unwrap();
    for error in second_of_both!(RateLimitLayer::new(hourly), &server.url("/")) {
        let rejection = Rejection::of(&*error).unwrap();
        assert_eq!(rejection.reason(), Reason::RateLimited);
        assert!(rejection.retry_after().unwrap() > Duration::from_secs(3_000));
    }
    assert_eq!((server.connections(), server.requests().len()), (2, 2));
}

/// The first connection is refused by the peer, and everything after it by us.
#[tokio::test]
async fn a_breaker_around_a_connector_opens_by_connections_that_fail() {
    let server = Server::start(Reply::ok()).await;
    let url = server.url("/");
    server.stop().await;
    let policy = BreakerPolicy::builder().consecutive_failures(1);
    let policy = policy.build().unwrap();
    for error in second_of_both!(BreakerLayer::new(policy.clone(), Plain::idempotent()), &url) {
        let rejection = Rejection::of(&*error).unwrap();
        assert!(rejection.is_breaker_open() && !rejection.sent());
        assert!(rejection.retry_after().is_some());
    }
}

/// Connections are being made at once as many as it says; those that are open hold no place.
#[tokio::test]
async fn a_bulkhead_around_a_connector_bounds_the_connections_that_are_being_made() {
    let policy = || {
        let policy = BulkheadPolicy::builder().limit(1).max_waiting(0);
        policy.build().unwrap()
    };
    let (server, stuck) = (Server::start(Reply::hang()).await, full_listener());
    let layer = BulkheadLayer::new(policy(), Plain::idempotent()).dependency("peer");
    let handle = layer.handle();
    let client = hyper(connector(layer).layer(HttpConnector::new()), &stack());
    let open = tokio::spawn(client.clone().oneshot(post(&server.url("/"))));
    while server.requests().is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(handle.in_flight(), 0);
    let connecting = tokio::spawn(client.clone().oneshot(post(&stuck.url)));
    while handle.in_flight() == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let error = client.oneshot(post(&stuck.url)).await.err().unwrap();
    assert!(
        Rejection::of(&*error).unwrap().is_bulkhead_full(),
        "{error}"
    );
    connecting.abort();
    open.abort();
}

/// What hyper-util and tonic ask of a connector, whatever the layer's future is.
#[test]
fn the_future_of_any_layer_around_a_connector_can_be_moved() {
    fn asked<S: Service<Uri, Future: Unpin + Send + 'static>>(_: &S) {}
    let unmovable = tower::service_fn(async |_: Uri| Ok::<(), BoxError>(()));
    asked(&connector(Identity::new()).layer(unmovable));
}
