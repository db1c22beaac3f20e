//! What a server refuses, in which order, and what the caller is told.

use std::convert::Infallible;
use std::future::pending;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use ::http::{Request, Response, StatusCode};
use axum::Router;
use axum::routing::post;
use http_body_util::BodyExt;
use mamparo_testkit::body::ScriptedBody;
use tower::{Layer, Service, ServiceExt, service_fn};

use super::super::*;
use crate::bulkhead::BulkheadPolicy;
use crate::caller::{CallerKey, PeerAddress, TrustedProxies};
use crate::idempotency::{IdempotencyLayer, IdempotencyPolicy, MemoryStore};
use crate::load_shed::LoadShedPolicy;
use crate::rate_limit::RateLimitPolicy;

type Question = Request<ScriptedBody>;

fn from(peer: &str, forwarded: &str) -> Question {
    let request = Request::get("/").header("x-forwarded-for", forwarded);
    let mut request = request.body(ScriptedBody::empty()).unwrap();
    let peer: SocketAddr = peer.parse().unwrap();
    request.extensions_mut().insert(PeerAddress(peer));
    request
}

fn header<'a, B>(answer: &'a Response<B>, name: &str) -> &'a str {
    let value = answer.headers().get(name);
    value.map_or("", |value| value.to_str().unwrap())
}

async fn fine(_: Question) -> Result<Response<ScriptedBody>, Infallible> {
    Ok(Response::new(ScriptedBody::empty()))
}

#[tokio::test(start_paused = true)]
async fn each_caller_has_a_limit_of_its_own_and_is_told_what_is_left() {
    let policy = RateLimitPolicy::per(Duration::from_secs(60), 2)
        .build()
        .unwrap();
    let proxies = TrustedProxies::x_forwarded_for(["10.0.0.0/8"]).unwrap();
    let layers = http()
        .rate_limit(policy, CallerKey::address(proxies))
        .rate_limit_told_as(policy.quota("per-client").unwrap());
    let server = layers.layer(service_fn(fine));
    let ask = |peer: &str, client: &str| server.clone().oneshot(from(peer, client));
    for (client, status, left) in [
        ("203.0.113.1", 200, 1),
        ("203.0.113.1", 200, 0),
        ("203.0.113.2", 200, 1),
        ("203.0.113.1", 429, 0),
        ("9.9.9.9, 203.0.113.1", 429, 0),
    ] {
        let answer = ask("10.0.0.1:80", client).await.unwrap();
        assert_eq!(answer.status(), status, "{client}");
        assert_eq!(
            header(&answer, "ratelimit"),
            format!(r#""per-client";r={left};t=30"#)
        );
        let wait: u64 = header(&answer, "retry-after").parse().unwrap_or(0);
        assert_eq!((30..=45).contains(&wait), status == 429, "{wait}");
    }
    let refused = ask("10.0.0.1:80", "203.0.113.1").await.unwrap().into_body();
    let problem = refused.collect().await.unwrap().to_bytes();
    let problem = String::from_utf8(problem.into()).unwrap();
    assert!(problem.contains(r##"#quota-exceeded""##), "{problem}");
    assert!(
        problem.contains(r#""violated-policies":["per-client"]"#),
        "{problem}"
    );
    let stranger = ask("198.51.100.1:80", "203.0.113.1").await.unwrap();
    assert_eq!(
        stranger.status(),
        200,
        "whoever is no proxy of ours is believed nothing"
    );
}

/// What is refused further out has taken nothing further in.
#[tokio::test(start_paused = true)]
async fn the_limit_of_a_caller_comes_before_the_load_and_that_before_the_places() {
    let rate = RateLimitPolicy::per(Duration::from_secs(60), 3)
        .build()
        .unwrap();
    let shed = LoadShedPolicy::builder().max_in_flight(2).build().unwrap();
    let places = BulkheadPolicy::builder().limit(1).max_waiting(9);
    let places = places.wait_until_deadline().build().unwrap();
    let endless = service_fn(|_: Question| pending::<Result<Response<ScriptedBody>, Infallible>>());
    let mut server = http()
        .rate_limit(rate, CallerKey::nothing())
        .load_shed(shed)
        .bulkhead(places)
        .layer(endless);
    let mut call = async |taken: bool| {
        let call = server.ready().await.unwrap().call(from("192.0.2.1:80", ""));
        let mut call = Box::pin(call);
        match taken {
            true => {
                assert!(
                    tokio::time::timeout(Duration::from_millis(1), &mut call)
                        .await
                        .is_err()
                );
                Err(call)
            }
            false => Ok(call.await.unwrap()),
        }
    };
    let running = call(true).await;
    let waiting = call(true).await;
    let shed = call(false).await.unwrap();
    assert_eq!(shed.status(), 503, "after it has paid");
    let limited = call(false).await.unwrap();
    assert_eq!(limited.status(), 429);
    drop((running, waiting));
}

/// A panic is answered, its text told to nobody, and the next request finds a server.
#[tokio::test(start_paused = true)]
async fn a_panicking_handler_is_answered_with_500() {
    let handler = async |request: Question| {
        assert!(
            request.headers().contains_key("x-good"),
            "the password is 1234"
        );
        Ok::<_, Infallible>(Response::new(ScriptedBody::empty()))
    };
    let mut server = http().layer(service_fn(handler));
    let answer = server
        .ready()
        .await
        .unwrap()
        .call(from("192.0.2.1:80", ""))
        .await
        .unwrap();
    assert_eq!(answer.status(), 500);
    let problem = answer.into_body().collect().await.unwrap().to_bytes();
    let expected = concat!(
        r#"{"type":"about:blank","title":"Internal Server Error","status":500,"#,
        r#""detail":"the request could not be answered"}"#
    );
    assert_eq!(problem, expected);
    let mut good = from("192.0.2.1:80", "");
    good.headers_mut().insert("x-good", "yes".parse().unwrap());
    let answer = server.ready().await.unwrap().call(good).await.unwrap();
    assert_eq!(answer.status(), 200);
}

/// Notes each request that comes to it.
#[derive(Clone)]
struct Noting<S> {
    name: &'static str,
    seen: Arc<Mutex<Vec<&'static str>>>,
    inner: S,
}

impl<S> Layer<S> for Noting<()> {
    type Service = Noting<S>;

    fn layer(&self, inner: S) -> Noting<S> {
        let (name, seen) = (self.name, Arc::clone(&self.seen));
        Noting { name, seen, inner }
    }
}

impl<S: Service<Question>> Service<Question> for Noting<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Question) -> S::Future {
        self.seen.lock().unwrap().push(self.name);
        self.inner.call(request)
    }
}

/// Layers of one's own in the two places for them: what the caller gets outermost, and what runs innermost.
#[tokio::test(start_paused = true)]
async fn telemetry_stands_outermost_and_keys_right_around_the_handler() {
    let seen = Arc::default();
    let noting = |name| Noting {
        name,
        seen: Arc::clone(&seen),
        inner: (),
    };
    let rate = RateLimitPolicy::per(Duration::from_secs(60), 1)
        .build()
        .unwrap();
    let layers = http().rate_limit(rate, CallerKey::nothing());
    let layers = layers
        .telemetry(noting("telemetry"))
        .idempotency(noting("key"));
    let mut server = layers.layer(service_fn(fine));
    for status in [200, 429] {
        let request = from("192.0.2.1:80", "");
        let answer = server.ready().await.unwrap().call(request).await.unwrap();
        assert_eq!(answer.status(), status);
    }
    assert_eq!(*seen.lock().unwrap(), ["telemetry", "key", "telemetry"]);
}

/// A refusal uses no key, and a repetition is answered without running, each by its own layer.
#[tokio::test(start_paused = true)]
async fn a_repeated_request_is_answered_as_the_first_and_a_refusal_uses_no_key() {
    let policy = IdempotencyPolicy::for_all_callers().build().unwrap();
    let rate = RateLimitPolicy::per(Duration::from_secs(60), 2)
        .build()
        .unwrap();
    let runs = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&runs);
    let routes = Router::new().route(
        "/charges",
        post(async move || {
            (
                StatusCode::CREATED,
                format!("{}", count.fetch_add(1, Ordering::Relaxed)),
            )
        }),
    );
    let layers = http()
        .rate_limit(rate, CallerKey::nothing())
        .idempotency(IdempotencyLayer::new(MemoryStore::new(), policy));
    let server = routes.layer(layers);
    for (status, replayed) in [(201, false), (201, true), (429, false)] {
        let request = Request::post("/charges").header("idempotency-key", "\"a\"");
        let request = request.body(axum::body::Body::empty()).unwrap();
        let answer = server.clone().oneshot(request).await.unwrap();
        assert_eq!(answer.status(), status);
        assert_eq!(
            answer.headers().contains_key("idempotent-replayed"),
            replayed
        );
    }
    assert_eq!(runs.load(Ordering::Relaxed), 1);
}
