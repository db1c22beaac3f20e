//! Callers that go away in the middle.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use http_body_util::Full;
use mamparo_core::{CallContext, KeyStep};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tower::{Layer, ServiceExt, service_fn};

use super::super::{IdempotencyLayer, MemoryStore, OnExpiry};
use super::cast::{Heard, Server, policy, post};

const SECOND: Duration = Duration::from_secs(1);

/// A caller whose attempt timed out comes back and finds the answer of its first.
#[tokio::test(start_paused = true)]
async fn a_run_is_finished_without_its_caller() {
    let server = Server::slow(policy(), SECOND);
    let gone = timeout(SECOND / 2, server.post("k", "x")).await;
    assert!(gone.is_err());
    assert_eq!(
        server.post("k", "x").await.problem(),
        "idempotency-key-in-progress"
    );
    sleep(SECOND).await;
    assert_eq!(server.post("k", "x").await.body, "run 1");
    assert_eq!(server.runs(), 1);
    assert!(server.heard.has(KeyStep::LeftBehind));
}

/// With no place for it the run ends with its caller, and what it has done is unknown.
#[tokio::test(start_paused = true)]
async fn with_no_place_left_a_run_ends_with_its_caller() {
    for (policy, status) in [
        (policy(), 500),
        (policy().on_expiry(OnExpiry::RunAgain), 200),
    ] {
        let server = Server::slow(policy.left_behind(0), SECOND);
        let gone = timeout(SECOND / 2, server.post("k", "x")).await;
        assert!(gone.is_err());
        sleep(Duration::from_millis(1)).await;
        assert_eq!(server.post("k", "x").await.status.as_u16(), status);
        assert!(server.heard.has(KeyStep::Abandoned));
    }
}

/// The number of such runs is bounded, and a server that stops can wait for them.
#[tokio::test(start_paused = true)]
async fn runs_without_callers_are_counted_bounded_and_waited_for() {
    let heard = Arc::new(Heard::default());
    let policy = policy().left_behind(2).build().unwrap();
    let layer = IdempotencyLayer::new(MemoryStore::new(), policy).observer(heard.clone());
    let service = layer.layer(service_fn(async |_| {
        sleep(SECOND).await;
        Ok::<_, std::convert::Infallible>(Response::new(Full::<Bytes>::from("done")))
    }));
    for key in ["a", "b", "c"] {
        let gone = timeout(SECOND / 4, service.clone().oneshot(post(key, "x"))).await;
        assert!(gone.is_err());
    }
    assert_eq!(layer.left_behind(), 2);
    timeout(2 * SECOND, layer.settled()).await.unwrap();
    assert_eq!(layer.left_behind(), 0);
    assert_eq!(
        heard
            .steps()
            .iter()
            .filter(|step| **step == KeyStep::LeftBehind)
            .count(),
        2
    );
}

/// What remains of the caller's time ends with the caller.
#[tokio::test(start_paused = true)]
async fn a_run_that_is_left_behind_has_no_deadline_of_its_callers() {
    let policy = policy().build().unwrap();
    let layer = IdempotencyLayer::new(MemoryStore::new(), policy);
    let service = layer.layer(service_fn(async |_| {
        let before = CallContext::current().deadline().is_some();
        sleep(SECOND).await;
        let after = CallContext::current().deadline().is_some();
        Ok::<_, std::convert::Infallible>(Response::new(Full::from(format!("{before} {after}"))))
    }));
    let limits = crate::server_deadline::ServerDeadlinePolicy::builder();
    let limits = limits.maximum(SECOND / 2).build().unwrap();
    let service = crate::server_deadline::ServerDeadlineLayer::http(limits).layer(service);
    assert!(service.clone().oneshot(post("k", "x")).await.is_err());
    sleep(SECOND).await;
    let response = service.oneshot(post("k", "x")).await.unwrap();
    let body = http_body_util::BodyExt::collect(response.into_body())
        .await
        .unwrap();
    assert_eq!(body.to_bytes(), "true false");
}

/// A caller that goes away before its handler is called leaves nothing behind.
#[tokio::test(start_paused = true)]
async fn a_caller_that_goes_away_before_the_run_leaves_its_key_free() {
    let store = super::stores::Slow::new(MemoryStore::new(), SECOND);
    let server = Server::over(store, policy().store_timeout(5 * SECOND), async |run, _| {
        Response::new(Full::from(format!("run {run}")))
    });
    let gone = timeout(SECOND / 2, server.post("k", "x")).await;
    assert!(gone.is_err());
    sleep(5 * SECOND).await;
    assert_eq!(server.runs(), 0, "nobody would hear the answer");
    assert_eq!(server.post("k", "x").await.body, "run 1");
    assert!(server.heard.has(KeyStep::Released));
}

/// A request whose body breaks off is not run.
#[tokio::test]
async fn a_request_that_breaks_off_is_not_run() {
    use mamparo_testkit::body::{Frames, ScriptedBody};
    let policy = policy().build().unwrap();
    let layer = IdempotencyLayer::new(MemoryStore::new(), policy);
    let runs = Arc::new(Semaphore::new(0));
    let count = Arc::clone(&runs);
    let service = layer.layer(service_fn(move |_| {
        count.add_permits(1);
        async { Ok::<_, std::convert::Infallible>(Response::new(Full::<Bytes>::default())) }
    }));
    let broken = ScriptedBody::new(Frames::new().data("half").error("reset"));
    let request = post("k", "").map(|_| broken);
    let response = service.clone().oneshot(request).await.unwrap();
    assert_eq!(response.status(), 400);
    assert_eq!(runs.available_permits(), 0);
    let whole = post("k", "").map(|_| ScriptedBody::new("whole"));
    assert_eq!(service.oneshot(whole).await.unwrap().status(), 200);
}
