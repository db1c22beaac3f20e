//! That the layers stand in the order that is promised.

use std::sync::Arc;
use std::time::Duration;

use http::Response;
use mamparo_core::{BoxError, Reason, clock};
use mamparo_testkit::body::ScriptedBody;
use mamparo_testkit::service::Step;
use tower::{Layer, ServiceExt};

use super::cast::{Answered, Heard, Peer, SECOND, answer, call, get, peer};
use crate::attempt_timeout::AttemptPolicy;
use crate::breaker::{BreakerHandle, BreakerPolicy};
use crate::bulkhead::BulkheadPolicy;
use crate::deadline::DeadlinePolicy;
use crate::fallback::{FallbackPolicy, from_fn};
use crate::idempotency_key::KeyPolicy;
use crate::load_shed::LoadShedPolicy;
use crate::rate_limit::RateLimitPolicy;
use crate::stack::Stack;

/// A stack in which each layer is on, and would refuse a second call beside the first.
fn strict() -> Stack {
    let shed = LoadShedPolicy::builder().max_in_flight(1);
    let bulkhead = BulkheadPolicy::builder().limit(1).max_waiting(0);
    let rate = RateLimitPolicy::per(3_600 * SECOND, 1);
    Stack::http("psp")
        .load_shed(shed.build().unwrap())
        .idempotency_key(KeyPolicy::default())
        .bulkhead(bulkhead.build().unwrap())
        .operation_breaker(BreakerPolicy::default())
        .rate_limit(rate.build().unwrap())
}

fn force_open(breaker: Option<BreakerHandle>) {
    breaker.unwrap().force_open();
}

fn hanging() -> Peer {
    peer([]).otherwise(Step::<Answered>::hang)
}

/// Of two layers that would both refuse a call, the outer one does: so each is turned off in turn, outermost first.
#[tokio::test(start_paused = true)]
async fn whoever_stands_further_out_refuses_first() {
    let mut stack = strict();
    let peer = hanging();
    let first = tokio::spawn(stack.layer(peer.clone()).oneshot(get()));
    tokio::task::yield_now().await;
    assert_eq!(peer.running(), 1);
    force_open(stack.operation_breaker_handle());
    force_open(stack.breaker_handle());

    assert_eq!(call(&stack, &peer).await, Err(Reason::Overloaded));
    stack = stack.load_shed(LoadShedPolicy::off());
    assert_eq!(call(&stack, &peer).await, Err(Reason::BulkheadFull));
    stack = stack.bulkhead(BulkheadPolicy::off());
    assert_eq!(call(&stack, &peer).await, Err(Reason::BreakerOpen));
    stack = stack.operation_breaker(BreakerPolicy::off());
    assert_eq!(call(&stack, &peer).await, Err(Reason::BreakerOpen));
    stack = stack.breaker(BreakerPolicy::off());
    assert_eq!(call(&stack, &peer).await, Err(Reason::RateLimited));
    assert_eq!(peer.started(), 1);
    first.abort();
}

/// Only what is further in than the retry ends an attempt.
#[tokio::test(start_paused = true)]
async fn one_breaker_refuses_operations_and_the_other_attempts() {
    let heard = Arc::new(Heard::default());
    let stack = Stack::http("psp")
        .operation_breaker(BreakerPolicy::default())
        .observer(heard.clone());
    let peer = peer([]);
    force_open(stack.breaker_handle());
    call(&stack, &peer).await.unwrap_err();
    let seen = heard.take();
    assert_eq!(seen[0], "BreakerTransition");
    assert_eq!(
        seen[1..],
        ["BreakerOpen", "attempt 1 ended", "operation ended after 1"]
    );

    force_open(stack.operation_breaker_handle());
    call(&stack, &peer).await.unwrap_err();
    assert_eq!(heard.take(), ["BreakerTransition", "BreakerOpen"]);
}

/// What is charged and judged once per attempt, and what once per operation.
#[tokio::test(start_paused = true)]
async fn an_operation_of_two_attempts_is_counted_once_outside_of_the_retry_and_twice_inside() {
    let rate = RateLimitPolicy::per(3_600 * SECOND, 3).build().unwrap();
    let window = BreakerPolicy::builder().failure_rate(1.0);
    let stack = Stack::http("psp")
        .operation_breaker(window.clone().build().unwrap())
        .breaker(window.build().unwrap())
        .rate_limit(rate);
    let peer = peer([answer(503), answer(200), answer(200)]);
    assert_eq!(call(&stack, &peer).await, Ok(200));
    let counted = |breaker: Option<BreakerHandle>| {
        let rates = breaker.unwrap().snapshot().rates;
        (rates.calls, rates.failures)
    };
    assert_eq!(counted(stack.operation_breaker_handle()), (1, 0));
    assert_eq!(counted(stack.breaker_handle()), (2, 1));
    assert_eq!(call(&stack, &peer).await, Ok(200));
    assert_eq!(call(&stack, &peer).await, Err(Reason::RateLimited));
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_a_turn_is_no_part_of_what_an_attempt_may_take() {
    let attempt = AttemptPolicy::builder().timeout(SECOND).build().unwrap();
    let rate = RateLimitPolicy::per(3 * SECOND, 1).max_wait(5 * SECOND);
    let stack = Stack::http("psp")
        .attempt(attempt)
        .rate_limit(rate.build().unwrap());
    let peer = peer([answer(200), answer(200).after(SECOND / 2)]);
    assert_eq!(call(&stack, &peer).await, Ok(200));
    assert_eq!(call(&stack, &peer).await, Ok(200));
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_a_place_counts_against_the_deadline() {
    let bulkhead = BulkheadPolicy::builder().limit(1).wait_until_deadline();
    let stack = Stack::http("psp")
        .deadline(DeadlinePolicy::within(SECOND).unwrap())
        .bulkhead(bulkhead.build().unwrap());
    let peer = hanging();
    let first = tokio::spawn(stack.layer(peer.clone()).oneshot(get()));
    tokio::time::sleep(Duration::from_millis(500)).await;
    let start = clock::now();
    assert!(call(&stack, &peer).await.is_err());
    assert!(start.elapsed() <= SECOND, "{:?}", start.elapsed());
    drop(first);
}

#[tokio::test(start_paused = true)]
async fn a_fallback_sees_what_every_other_layer_refused() {
    let partial = from_fn(|_| Ok::<_, BoxError>(partial()));
    let stack = strict().fallback(FallbackPolicy::default(), partial);
    let peer = hanging();
    let first = tokio::spawn(stack.layer(peer.clone()).oneshot(get()));
    tokio::task::yield_now().await;
    assert_eq!(call(&stack, &peer).await, Ok(203));
    assert_eq!(peer.started(), 1);
    first.abort();
}

fn partial() -> Answered {
    let answer = Response::builder().status(203);
    answer.body(ScriptedBody::empty()).unwrap()
}
