//! A hedge in the company of other layers, and around a real client.

use std::sync::{Arc, Mutex};

use mamparo_core::breaker::BreakerState;
use mamparo_core::{BoxError, CallContext, Plain, Rejection, clock};
use mamparo_testkit::service::{Script, Step};
use tower::{Layer, ServiceExt, service_fn};

use super::cast::*;
use crate::breaker::{BreakerLayer, BreakerPolicy};
use crate::bulkhead::{BulkheadLayer, BulkheadPolicy};
use crate::deadline::{DeadlineLayer, DeadlinePolicy};
use crate::hedge::{HedgeLayer, RetryError};

fn hedge_plain() -> HedgeLayer<Plain> {
    HedgeLayer::new(policy().build().unwrap(), Plain::idempotent())
}

/// Rows G4 and P-D2, A16: losers are no failures of the dependency, however many there are.
#[tokio::test(start_paused = true)]
async fn losers_do_not_open_a_breaker() {
    let breaker = BreakerPolicy::builder()
        .consecutive_failures(2)
        .build()
        .unwrap();
    let breaker = BreakerLayer::new(breaker, Plain::idempotent());
    let handle = breaker.handle();
    let stack = (hedge_plain(), breaker);
    // Every original hangs, and every hedge answers.
    let peer = Script::<u32, u32>::new((0..40).map(|call| match call % 2 {
        0 => Step::hang(),
        _ => Step::answer(7).after(MS),
    }));
    for _ in 0..20 {
        assert_eq!(stack.layer(peer.clone()).oneshot(1).await.unwrap(), 7);
    }
    let seen = handle.snapshot();
    assert_eq!(
        (seen.state, seen.consecutive_failures),
        (BreakerState::Closed, 0)
    );
    assert_eq!(seen.cancelled, 20);
}

/// A breaker that opens meanwhile refuses the hedge and not the original, which runs on.
#[tokio::test(start_paused = true)]
async fn an_open_breaker_refuses_a_hedge_and_the_original_runs_on() {
    let breaker = BreakerLayer::new(BreakerPolicy::default(), Plain::idempotent());
    let handle = breaker.handle();
    let peer = Script::<u32, u32>::new([Step::answer(7).after(300 * MS)]);
    let stack = (hedge_plain(), breaker).layer(peer.clone());
    let call = tokio::spawn(stack.oneshot(1));
    tokio::time::sleep(50 * MS).await;
    handle.force_open();
    assert_eq!(call.await.unwrap().unwrap(), 7);
    assert_eq!(peer.started(), 1);
}

/// Row G4: a loser's place is free in the poll in which the winner is heard of.
#[tokio::test(start_paused = true)]
async fn a_losers_place_in_a_bulkhead_is_free_at_once() {
    let bulkhead = BulkheadPolicy::builder().limit(2).build().unwrap();
    let bulkhead = BulkheadLayer::new(bulkhead, Plain::idempotent());
    let handle = bulkhead.handle();
    let peer = Script::<u32, u32>::new([Step::hang(), Step::answer(7).after(MS)]);
    let stack = (hedge_plain(), bulkhead).layer(peer);
    assert_eq!(stack.oneshot(1).await.unwrap(), 7);
    assert_eq!(handle.in_flight(), 0);
}

/// A deadline cuts all attempts, and the error says so.
#[tokio::test(start_paused = true)]
async fn a_deadline_cuts_every_attempt() {
    let deadline = DeadlineLayer::new(DeadlinePolicy::within(500 * MS).unwrap());
    let peer = Script::<u32, u32>::new([]).otherwise(Step::hang);
    let stack = (deadline, hedge_plain()).layer(peer.clone());
    let start = clock::now();
    let error = stack.oneshot(1).await.unwrap_err();
    assert!(Rejection::of(&*error).unwrap().is_deadline_exceeded());
    assert!(RetryError::of(&*error).is_none());
    assert_eq!(
        (start.elapsed(), peer.started(), peer.running()),
        (500 * MS, 2, 0)
    );
}

/// RC-08: every physical send of the operation has its own count, whichever attempt makes it.
#[tokio::test(start_paused = true)]
async fn attempts_side_by_side_count_their_sends_together() {
    let policy = policy().max_attempts(3).build().unwrap();
    let counts = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&counts);
    let send = service_fn(move |_: u32| {
        let seen = Arc::clone(&seen);
        async move {
            seen.lock()
                .unwrap()
                .push(CallContext::count_send("catalog".into()));
            tokio::time::sleep(250 * MS).await;
            // A second send by the same attempt, after others have sent: a redirect, say.
            seen.lock()
                .unwrap()
                .push(CallContext::count_send("catalog".into()));
            Ok::<_, BoxError>(7)
        }
    });
    let layer = HedgeLayer::new(policy, Plain::idempotent()).dependency("catalog");
    layer.layer(send).oneshot(1).await.unwrap();
    assert_eq!(*counts.lock().unwrap(), [0, 1, 2, 3]);
}

/// Row P-D2, over a real connection: the peer sees the loser given up, and the body is sent whole by both.
#[cfg(feature = "hyper")]
#[tokio::test]
async fn a_peer_sees_that_a_loser_was_given_up() {
    use std::time::Duration;

    use bytes::Bytes;
    use http::{Method, Request, StatusCode};
    use http_body_util::{BodyExt, Full};
    use mamparo_testkit::server::{Reply, Server};
    use tower::ServiceBuilder;

    use crate::client::HyperTransport;
    use hyper_util::client::legacy::Client;
    use hyper_util::rt::TokioExecutor;

    let server = Server::start([Reply::hang(), Reply::ok()]).await;
    let policy = policy().fixed(50 * MS).build().unwrap();
    let client = Client::builder(TokioExecutor::new()).build_http();
    let service = ServiceBuilder::new()
        .layer(HedgeLayer::http(policy))
        .service(HyperTransport::new(client));
    let request = Request::builder()
        .method(Method::PUT)
        .uri(server.url("/items"));
    let request = request.body(Full::new(Bytes::from("here"))).unwrap();
    let answer = service.oneshot(request).await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    answer.into_body().collect().await.unwrap();
    let idle = tokio::time::timeout(Duration::from_secs(10), server.until_idle());
    assert!(idle.await.is_ok(), "the hanging request was not given up");
    let seen = server.requests();
    let sent: Vec<_> = seen
        .iter()
        .map(|seen| (&seen.body[..], seen.header("x-mamparo-attempt")))
        .collect();
    assert_eq!(sent, [(&b"here"[..], None), (&b"here"[..], Some("2"))]);
}
