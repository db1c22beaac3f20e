//! Each layer, on and off; what a stack says of itself; and who shares its state.

use std::time::Duration;

use mamparo_core::{Budget, Reason, clock};
use mamparo_testkit::service::Step;
use tower::{Layer, ServiceExt};

use super::cast::{Answered, SECOND, answer, call, get, peer};
use crate::attempt_timeout::AttemptPolicy;
use crate::breaker::BreakerPolicy;
use crate::bulkhead::BulkheadPolicy;
use crate::deadline::DeadlinePolicy;
use crate::hedge::HedgePolicy;
use crate::idempotency_key::KeyPolicy;
use crate::load_shed::LoadShedPolicy;
use crate::rate_limit::RateLimitPolicy;
use crate::retry::RetryPolicy;
use crate::stack::Stack;

fn all_off() -> Stack {
    let once = RetryPolicy::builder().max_attempts(1).build().unwrap();
    let attempt = AttemptPolicy::builder().no_timeout().no_body_idle();
    Stack::http("psp")
        .deadline(DeadlinePolicy::none())
        .bulkhead(BulkheadPolicy::off())
        .retry(once)
        .breaker(BreakerPolicy::off())
        .attempt(attempt.build().unwrap())
}

#[tokio::test(start_paused = true)]
async fn with_every_layer_off_all_calls_pass_and_nothing_is_counted() {
    let stack = all_off();
    assert!(stack.breaker_handle().is_none() && stack.operation_breaker_handle().is_none());
    assert!(stack.bulkhead_handle().is_none() && stack.load_shed_layer().is_none());
    let peer = peer([]).otherwise(|| answer(503).after(60 * SECOND));
    let calls = (0..200).map(|_| {
        let service = stack.layer(peer.clone());
        async move { service.oneshot(get()).await.unwrap().status().as_u16() }
    });
    let mut running = tokio::task::JoinSet::new();
    calls.for_each(|call| drop(running.spawn(call)));
    let statuses = running.join_all().await;
    assert!(statuses.iter().all(|status| *status == 503));
    assert_eq!((peer.started(), peer.max_running()), (200, 200));
}

#[tokio::test(start_paused = true)]
async fn by_default_the_bulkhead_refuses_the_129th_operation_and_the_65th_after_a_tenth_of_a_second()
 {
    let stack = Stack::http("psp");
    let peer = peer([]).otherwise(|| answer(200).after(SECOND));
    let start = clock::now();
    let mut running = tokio::task::JoinSet::new();
    for _ in 0..129 {
        let (stack, peer) = (stack.clone(), peer.clone());
        running.spawn(async move { (call(&stack, &peer).await, start.elapsed()) });
    }
    let ended = running.join_all().await;
    let refused = |after: Duration| {
        let full = |end: &&(Result<u16, Reason>, Duration)| {
            end.0 == Err(Reason::BulkheadFull) && end.1 == after
        };
        ended.iter().filter(full).count()
    };
    assert_eq!(refused(Duration::ZERO), 1);
    assert_eq!(refused(Duration::from_millis(100)), 64, "{ended:?}");
    assert_eq!(peer.started(), 64);
}

#[tokio::test(start_paused = true)]
async fn by_default_the_breaker_opens_at_the_fifth_failed_attempt() {
    let stack = Stack::http("psp").retry(RetryPolicy::builder().max_attempts(1).build().unwrap());
    let peer = peer([]).otherwise(|| answer(503));
    for _ in 0..5 {
        assert_eq!(call(&stack, &peer).await, Ok(503));
    }
    assert_eq!(call(&stack, &peer).await, Err(Reason::BreakerOpen));
    assert_eq!(peer.started(), 5);
}

#[tokio::test(start_paused = true)]
async fn each_layer_that_is_off_can_be_turned_on() {
    let rate = RateLimitPolicy::per(3_600 * SECOND, 1).build().unwrap();
    let stack = all_off().rate_limit(rate);
    let peer = peer([]).otherwise(|| answer(200));
    assert_eq!(call(&stack, &peer).await, Ok(200));
    assert_eq!(call(&stack, &peer).await, Err(Reason::RateLimited));

    let shed = LoadShedPolicy::builder().max_in_flight(1).build().unwrap();
    let stack = all_off().load_shed(shed);
    let slow = super::cast::peer([]).otherwise(Step::<Answered>::hang);
    let first = tokio::spawn(stack.layer(slow.clone()).oneshot(get()));
    tokio::task::yield_now().await;
    assert_eq!(call(&stack, &slow).await, Err(Reason::Overloaded));
    assert_eq!(stack.load_shed_layer().unwrap().in_flight(), Some(1));
    first.abort();
}

/// The second attempt runs beside the first, and one that failed is followed at once: there is no retry besides.
#[tokio::test(start_paused = true)]
async fn a_hedge_takes_the_retrys_place_and_can_share_its_budget() {
    let writes = Stack::http("psp");
    let hedge = HedgePolicy::builder().fixed(SECOND / 10);
    let hedge = hedge.budget(writes.budget().clone()).build().unwrap();
    let reads = writes.clone().hedge(hedge);
    let peer = peer([answer(200).after(SECOND), answer(202)]);
    let start = clock::now();
    assert_eq!(call(&reads, &peer).await, Ok(202));
    assert_eq!((start.elapsed(), peer.started()), (SECOND / 10, 2));
    assert_eq!(reads.worst_case().attempts, 2);
}

#[tokio::test(start_paused = true)]
async fn clones_and_all_that_a_stack_makes_share_one_state() {
    let stack = Stack::http("psp");
    let breaker = stack.breaker_handle().unwrap();
    let clone = stack.clone().deadline(DeadlinePolicy::none());
    let peer = peer([]).otherwise(|| answer(200));
    let mut made = stack.layer(peer.clone());
    breaker.force_open();
    assert_eq!(call(&clone, &peer).await, Err(Reason::BreakerOpen));
    let made = made.ready().await.unwrap();
    assert!(tower::Service::call(made, get()).await.is_err());
    breaker.reset();
    stack.bulkhead_handle().unwrap().resize(7).unwrap();
    assert_eq!(clone.bulkhead_handle().unwrap().limit(), 7);
    assert_eq!(call(&clone, &peer).await, Ok(200));
}

#[test]
fn a_stack_says_what_each_breaker_observes_and_what_an_operation_costs_at_worst() {
    let expected = "\
psp, outermost first:
  deadline: 10s, or what the caller has left
  fallback: off
  load shedding: off
  idempotency key: off
  bulkhead: 64 at once, 64 waiting for up to 100ms
  breaker, observing operations: off
  retry: up to 3 attempts, one by one
  breaker, observing attempts: opens at 5 failures in a row
  rate limit: off
  attempt timeout: 2s
at worst 3 attempts, and 6.4s until an answer or an error";
    assert_eq!(Stack::http("psp").to_string(), expected);
}

#[test]
fn what_is_on_is_described_by_its_settings() {
    let breaker = BreakerPolicy::builder().failure_rate(0.5).shadow(true);
    let rate = RateLimitPolicy::per(SECOND, 50).max_wait(SECOND / 4);
    let hedge = HedgePolicy::builder().budget(Budget::unlimited());
    let shed = LoadShedPolicy::builder().max_in_flight(9);
    let text = Stack::http("psp")
        .load_shed(shed.build().unwrap())
        .idempotency_key(KeyPolicy::default())
        .bulkhead(
            BulkheadPolicy::builder()
                .wait_until_deadline()
                .build()
                .unwrap(),
        )
        .operation_breaker(breaker.build().unwrap())
        .hedge(hedge.build().unwrap())
        .breaker(BreakerPolicy::off())
        .rate_limit(rate.build().unwrap())
        .to_string();
    for line in [
        "load shedding: on",
        "idempotency key: idempotency-key",
        "bulkhead: 64 at once, 64 waiting until their deadline",
        "operations: would open at 5 failures in a row, or at 50 % failures of at least 20 calls in the last 10s",
        "hedge: up to 2 attempts, side by side",
        "breaker, observing attempts: off",
        "rate limit: 50 per 1s, 50 at once, the others wait for up to 250ms",
        "at worst 2 attempts, and 10s until an answer or an error",
    ] {
        assert!(text.contains(line), "{line:?} is not in:\n{text}");
    }
    let endless = all_off().to_string();
    assert!(endless.ends_with("at worst 1 attempt, for as long as the dependency takes"));
}
