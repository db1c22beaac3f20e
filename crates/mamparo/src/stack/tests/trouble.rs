//! A dependency in trouble.

use std::time::Duration;

use http::Response;
use http_body_util::BodyExt;
use mamparo_core::{BoxError, Rejection, RetryError, clock};
use mamparo_testkit::body::{Frames, ScriptedBody};
use tower::{Layer, ServiceExt};

use super::cast::{Answered, SECOND, answer, get, peer};
use crate::breaker::BreakerPolicy;
use crate::bulkhead::BulkheadPolicy;
use crate::deadline::DeadlinePolicy;
use crate::fallback::{FallbackPolicy, FellBack, from_fn};
use crate::retry::RetryPolicy;
use crate::stack::Stack;

/// Law 8: the breaker opens between two attempts, and the caller gets the last real response's head.
#[tokio::test(start_paused = true)]
async fn what_the_breaker_refuses_inside_of_the_retry_is_not_sent_again() {
    let breaker = BreakerPolicy::builder().consecutive_failures(2);
    let retry = RetryPolicy::builder().max_attempts(10);
    let stack = Stack::http("psp")
        .breaker(breaker.build().unwrap())
        .retry(retry.build().unwrap());
    let peer = peer([]).otherwise(|| answer(503));
    let error = stack.layer(peer.clone()).oneshot(get()).await.unwrap_err();
    let rejection = Rejection::of(&*error).unwrap();
    assert!(rejection.is_breaker_open());
    let last = rejection.last_response().unwrap();
    assert_eq!(last.status, 503);
    assert_eq!(RetryError::of(&*error).unwrap().ending().attempts(), 2);
    assert_eq!(peer.started(), 2);
}

/// Its place, its probe and its context go with the call, whoever gives it up.
#[tokio::test(start_paused = true)]
async fn a_call_that_is_given_up_leaves_nothing_behind() {
    let stack = Stack::http("psp");
    let peer = peer([answer(200).after(SECOND), answer(200)]);
    let call = stack.layer(peer.clone()).oneshot(get());
    assert!(tokio::time::timeout(SECOND / 2, call).await.is_err());
    assert_eq!(stack.bulkhead_handle().unwrap().in_flight(), 0);
    let snapshot = stack.breaker_handle().unwrap().snapshot();
    assert_eq!((snapshot.cancelled, snapshot.rates.failures), (1, 0));
    assert_eq!(peer.running(), 0);
}

/// Law 4.
#[tokio::test(start_paused = true)]
async fn a_place_is_held_until_the_body_ends() {
    let bulkhead = BulkheadPolicy::builder().limit(1).max_waiting(0);
    let stack = Stack::http("psp").bulkhead(bulkhead.build().unwrap());
    let body = ScriptedBody::new("1 EUR");
    let peer = peer([mamparo_testkit::service::Step::answer(Response::new(body))]);
    let answer = stack.layer(peer.clone()).oneshot(get()).await.unwrap();
    let handle = stack.bulkhead_handle().unwrap();
    assert_eq!(handle.in_flight(), 1);
    answer.into_body().collect().await.unwrap();
    assert_eq!(handle.in_flight(), 0);
}

/// Law 7: a fallback's answer is in time or not at all, to the end of its body.
#[tokio::test(start_paused = true)]
async fn a_fallbacks_body_is_cut_at_the_deadline() {
    let slow = from_fn(|_| -> Result<Answered, BoxError> {
        let frames = Frames::new().data("old").wait(60 * SECOND).data("prices");
        Ok(Response::new(ScriptedBody::new(frames)))
    });
    let stack = Stack::http("psp")
        .deadline(DeadlinePolicy::within(2 * SECOND).unwrap())
        .fallback(FallbackPolicy::default(), slow);
    let start = clock::now();
    let peer = peer([]).otherwise(|| answer(503));
    let answer = stack.layer(peer).oneshot(get()).await.unwrap();
    assert!(FellBack::of(&answer).is_some());
    let error = answer.into_body().collect().await.unwrap_err();
    assert!(Rejection::of(&*error).unwrap().is_deadline_exceeded());
    assert!(start.elapsed() <= 2 * SECOND + Duration::from_millis(1));
}
