//! Layers behind a real server: axum routes, called in memory and over a socket.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::error_handling::HandleErrorLayer;
use axum::extract::State;
use axum::http::{HeaderMap, Request, Response, StatusCode};
use axum::routing::{MethodRouter, get};
use axum::{BoxError, Router};
use http_body_util::BodyExt;
use mamparo::breaker::{BreakerLayer, BreakerPolicy};
use mamparo::rate_limit::{RateLimitLayer, RateLimitPolicy};
use mamparo::retry::{RetryLayer, RetryPolicy};
use mamparo::stack::Stack;
use mamparo_core::http::Http;
use mamparo_core::{Backoff, Budget};
use mamparo_testkit::body::{Frames, ScriptedBody};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tower::{ServiceBuilder, ServiceExt};

/// A retry that resends once in four operations, however long the test takes.
fn retry() -> RetryLayer<Http> {
    let budget = Budget::builder().ratio(0.25).min_per_second(0).build();
    let backoff = Backoff::builder().base(Duration::from_millis(1)).build();
    let policy = RetryPolicy::builder()
        .budget(budget.unwrap())
        .backoff(backoff.unwrap());
    RetryLayer::http(policy.build().unwrap())
}

/// Makes an answer of whatever went wrong, as axum asks of a layer.
async fn failed(error: BoxError) -> (StatusCode, String) {
    (StatusCode::BAD_GATEWAY, error.to_string())
}

async fn busy(State(calls): State<Arc<AtomicUsize>>) -> StatusCode {
    calls.fetch_add(1, Ordering::Relaxed);
    StatusCode::SERVICE_UNAVAILABLE
}

pub(crate) async fn serve(routes: Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(axum::serve(listener, routes).into_future());
    address
}

/// Sends one request without a body over a socket of its own, and returns all that comes back.
pub(crate) async fn exchange(address: SocketAddr, head: &str) -> String {
    let mut socket = TcpStream::connect(address).await.unwrap();
    let request = format!("{head}\r\nhost: a\r\nconnection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.unwrap();
    answer
}

async fn fetch(address: SocketAddr, path: &str) -> String {
    exchange(address, &format!("GET {path} HTTP/1.1\r\nte: trailers")).await
}

/// Row P-C10, law 1: what the layer shares is shared by all routes, however they are called.
#[tokio::test]
async fn one_layer_on_several_routes_has_one_budget() {
    let calls = Arc::new(AtomicUsize::new(0));
    let layer = ServiceBuilder::new()
        .layer(HandleErrorLayer::new(failed))
        .layer(retry());
    let routes = Router::new()
        .route("/a", get(busy).layer(layer.clone()))
        .route("/b", get(busy).layer(layer))
        .with_state(Arc::clone(&calls));
    let address = serve(routes.clone()).await;

    let in_memory = |path: &str| {
        let request = Request::get(path).body(Body::empty()).unwrap();
        routes.clone().oneshot(request)
    };
    for path in ["/a", "/b"] {
        let answer = in_memory(path).await.unwrap();
        assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert!(fetch(address, path).await.starts_with("HTTP/1.1 503"));
    }
    let calls = calls.load(Ordering::Relaxed);
    assert_eq!(calls, 5, "four operations pay for one resend");
}

/// How many of several calls of two routes, in memory and over a socket in turn, reach their handlers.
async fn reached(routes: impl FnOnce(MethodRouter, MethodRouter) -> Router) -> usize {
    let calls = Arc::new(AtomicUsize::new(0));
    let handler = || {
        let calls = Arc::clone(&calls);
        get(async move || {
            calls.fetch_add(1, Ordering::Relaxed);
            StatusCode::SERVICE_UNAVAILABLE
        })
    };
    let routes = routes(handler(), handler());
    let address = serve(routes.clone()).await;
    for path in ["/a", "/b", "/a", "/b"] {
        let request = Request::get(path).body(Body::empty()).unwrap();
        routes.clone().oneshot(request).await.unwrap();
        fetch(address, path).await;
    }
    calls.load(Ordering::Relaxed)
}

/// Row P-C10: of eight calls, each layer lets as many pass as if there were one route.
#[tokio::test]
async fn one_layer_on_several_routes_has_one_limit_and_one_breaker() {
    let refused = || ServiceBuilder::new().layer(HandleErrorLayer::new(failed));
    let hour = Duration::from_secs(3_600);
    let rate = RateLimitPolicy::per(hour, 3).build().unwrap();
    let limit = refused().layer(RateLimitLayer::http(rate));
    let reached_limited = reached(|a, b| {
        let routes = Router::new().route("/a", a.layer(limit.clone()));
        routes.route("/b", b.layer(limit))
    });
    assert_eq!(reached_limited.await, 3);

    let policy = BreakerPolicy::builder().consecutive_failures(2);
    let policy = policy.open_wait(hour, hour).build().unwrap();
    let breaker = refused().layer(BreakerLayer::http(policy));
    let reached_broken = reached(|a, b| {
        let routes = Router::new().route("/a", a.layer(breaker.clone()));
        routes.route("/b", b.layer(breaker))
    });
    assert_eq!(reached_broken.await, 2);
}

/// Row P-C10: the layers of a stack share their state as each of them does alone.
#[tokio::test]
async fn one_stack_on_several_routes_has_one_limit_and_one_breaker() {
    let refused = || ServiceBuilder::new().layer(HandleErrorLayer::new(failed));
    let hour = Duration::from_secs(3_600);
    let once = RetryPolicy::builder().max_attempts(1).build().unwrap();
    let stack = || Stack::http("handlers").retry(once.clone());
    let rate = RateLimitPolicy::per(hour, 3).build().unwrap();
    let limited = refused().layer(stack().rate_limit(rate));
    let reached_limited = reached(|a, b| {
        let routes = Router::new().route("/a", a.layer(limited.clone()));
        routes.route("/b", b.layer(limited))
    });
    assert_eq!(reached_limited.await, 3);

    let policy = BreakerPolicy::builder().consecutive_failures(2);
    let policy = policy.open_wait(hour, hour).build().unwrap();
    let broken = refused().layer(stack().breaker(policy));
    let reached_broken = reached(|a, b| {
        let routes = Router::new().route("/a", a.layer(broken.clone()));
        routes.route("/b", b.layer(broken))
    });
    assert_eq!(reached_broken.await, 2);
}

fn scripted() -> Response<Body> {
    let wait = Duration::from_millis(1);
    let frames = Frames::new().data("one").wait(wait).data("two").wait(wait);
    let body = ScriptedBody::new(frames.trailer("x-check", "whole")).without_hints();
    Response::builder()
        .header("trailer", "x-check")
        .body(Body::new(body))
        .unwrap()
}

async fn frames(routes: Router) -> Vec<Result<axum::body::Bytes, HeaderMap>> {
    let request = Request::get("/").body(Body::empty()).unwrap();
    let mut body = routes.oneshot(request).await.unwrap().into_body();
    let mut frames = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.unwrap().into_data();
        frames.push(frame.map_err(|frame| frame.into_trailers().unwrap()));
    }
    frames
}

/// Row P-B6: with a retry and without, the same frames and trailers, also for a consumer that speaks HTTP/1.
#[tokio::test]
async fn an_answers_frames_and_trailers_pass_a_retry_as_they_came() {
    let bare = Router::new().route("/", get(async || scripted()));
    let layer = ServiceBuilder::new()
        .layer(HandleErrorLayer::new(failed))
        .layer(retry());
    let behind = bare.clone().layer(layer);

    let (without, with) = (frames(bare).await, frames(behind.clone()).await);
    assert_eq!(without.len(), 3, "two of data, and the trailers");
    assert_eq!(with, without);
    let answer = fetch(serve(behind).await, "/").await;
    assert!(answer.contains("one") && answer.contains("two"), "{answer}");
    assert!(answer.contains("x-check: whole"), "{answer}");
}
