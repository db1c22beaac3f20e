//! Layers that stand around one another: what one of them refuses, the others must not take for the dependency's doing.

use std::time::Duration;

use mamparo::breaker::{BreakerBuilder, BreakerLayer, BreakerPolicy, BreakerState, Window};
use mamparo::bulkhead::{BulkheadLayer, BulkheadPolicy};
use mamparo::hedge::{HedgeLayer, HedgePolicy};
use mamparo::rate_limit::{RateLimitLayer, RateLimitPolicy};
use mamparo::retry::{RetryLayer, RetryPolicy};
use mamparo_core::{BoxError, Budget, Plain, Reason, Rejection};
use mamparo_testkit::service::{Script, Step};
use proptest::prelude::*;
use tokio::task::JoinSet;
use tokio::time::{advance, sleep};
use tower::{Layer, Service, ServiceBuilder, ServiceExt};

type Dependency = Script<u32, u32>;

const SECOND: Duration = Duration::from_secs(1);

fn healthy(takes: Duration) -> Dependency {
    Dependency::new([]).otherwise(move || Step::answer(7).after(takes))
}

fn dead() -> Dependency {
    Dependency::new([]).otherwise(|| Step::error("dead"))
}

fn breaker(policy: BreakerBuilder) -> BreakerLayer<Plain> {
    BreakerLayer::new(policy.build().unwrap(), Plain::idempotent())
}

/// One place, and no line.
fn bulkhead() -> BulkheadLayer<Plain> {
    let policy = BulkheadPolicy::builder().limit(1).max_waiting(0);
    BulkheadLayer::new(policy.build().unwrap(), Plain::idempotent())
}

fn retry(budget: Budget) -> RetryLayer<Plain> {
    let policy = RetryPolicy::builder().max_attempts(3).budget(budget);
    RetryLayer::new(policy.build().unwrap(), Plain::idempotent())
}

fn reason(error: &BoxError) -> Reason {
    Rejection::of(&**error).expect("a rejection").reason()
}

/// Opens at the first failure, for a second exactly.
fn quick_breaker() -> BreakerBuilder {
    let policy = BreakerPolicy::builder().consecutive_failures(1);
    policy.open_wait(SECOND, SECOND).open_wait_jitter(0.0)
}

/// Row B7: the limiter's own rejections, three of four calls, are no failures of a dependency that is healthy.
#[tokio::test(start_paused = true)]
async fn what_a_bulkhead_refuses_inside_of_a_breaker_does_not_open_it() {
    let policy = BreakerPolicy::builder().failure_rate(0.5).minimum_calls(2);
    let breaker = breaker(policy.consecutive_failures(2));
    let (handle, dependency) = (breaker.handle(), healthy(SECOND));
    let stack = ServiceBuilder::new().layer(breaker).layer(bulkhead());
    let service = stack.service(dependency.clone());
    for _ in 0..3 {
        let mut calls = JoinSet::new();
        for number in 0..4 {
            calls.spawn(service.clone().oneshot(number));
        }
        let ended = calls.join_all().await;
        let refused = ended.iter().filter_map(|ended| ended.as_ref().err());
        assert!(
            refused
                .clone()
                .all(|error| reason(error) == Reason::BulkheadFull)
        );
        assert_eq!(refused.count(), 3);
    }
    assert_eq!(handle.state(), BreakerState::Closed);
    let rates = handle.snapshot().rates;
    assert_eq!(
        (rates.calls, rates.failures, dependency.started()),
        (3, 0, 3)
    );
}

/// Row A10: the probe never reached the dependency, so it says nothing, and its place goes to the next call.
#[tokio::test(start_paused = true)]
async fn a_probe_that_a_layer_further_in_refuses_gives_its_place_back() {
    let breaker = breaker(quick_breaker().probes(1).successes_to_close(1));
    let (handle, bulkhead) = (breaker.handle(), bulkhead());
    let held = bulkhead.layer(healthy(10 * SECOND));
    let hourly = RateLimitPolicy::per(3_600 * SECOND, 2).build().unwrap();
    let dependency = Dependency::new([Step::error("dead")]).otherwise(|| Step::answer(7));
    let service = ServiceBuilder::new()
        .layer(breaker)
        .layer(RateLimitLayer::new(hourly))
        .layer(bulkhead)
        .service(dependency.clone());
    let call = async || service.clone().oneshot(1).await;

    assert!(call().await.is_err());
    let holder = tokio::spawn(held.oneshot(1));
    sleep(SECOND).await;
    assert_eq!(reason(&call().await.unwrap_err()), Reason::BulkheadFull);
    assert_eq!(handle.snapshot().probes, 0);
    holder.abort();
    sleep(SECOND).await;
    assert_eq!(reason(&call().await.unwrap_err()), Reason::RateLimited);
    assert_eq!(
        handle.state(),
        BreakerState::HalfOpen,
        "neither opened nor closed by them"
    );
    assert_eq!((handle.snapshot().probes, dependency.started()), (0, 1));
    sleep(3_600 * SECOND).await;
    call().await.unwrap();
    assert_eq!(handle.state(), BreakerState::Closed);
}

/// Rows B12 and P-C13: four operations of three attempts each, before a breaker that opens at ten failures of ten.
#[tokio::test(start_paused = true)]
async fn a_breaker_counts_attempts_inside_of_a_retry_and_operations_outside_of_it() {
    let policy = || {
        let window = BreakerPolicy::builder().no_consecutive_failures();
        let window = window.window(Window::calls(10)).minimum_calls(10);
        breaker(window.failure_rate(1.0))
    };
    let (inside, outside) = (policy(), policy());
    let (attempts, operations) = (inside.handle(), outside.handle());
    let dependency = dead();
    let stack = ServiceBuilder::new().layer(retry(Budget::unlimited()));
    let inside = stack.layer(inside).service(dependency.clone());
    let stack = ServiceBuilder::new().layer(outside);
    let outside = stack.layer(retry(Budget::unlimited())).service(dead());
    for _ in 0..4 {
        assert!(inside.clone().oneshot(1).await.is_err());
        assert!(outside.clone().oneshot(1).await.is_err());
    }
    assert_eq!(
        (attempts.state(), dependency.started()),
        (BreakerState::Open, 10)
    );
    let rates = operations.snapshot().rates;
    assert_eq!(
        (operations.state(), rates.calls, rates.failures),
        (BreakerState::Closed, 4, 4)
    );
}

/// Row P-C13: what a resend mends is a failure for the inner one only.
#[tokio::test(start_paused = true)]
async fn of_two_breakers_of_one_dependency_one_may_see_attempts_and_the_other_operations() {
    let policy = || BreakerPolicy::builder().failure_rate(1.0);
    let (outside, inside) = (breaker(policy()), breaker(policy()));
    let handles = [outside.handle(), inside.handle()];
    let stack = ServiceBuilder::new().layer(outside);
    let stack = stack.layer(retry(Budget::unlimited())).layer(inside);
    let peer = Script::new([Step::error("once"), Step::answer(7)]);
    assert_eq!(stack.service(peer).oneshot(1).await.unwrap(), 7);
    let rates = handles.map(|handle| handle.snapshot().rates);
    let counts = rates.map(|rates| (rates.calls, rates.failures));
    assert_eq!(counts, [(1, 0), (2, 1)]);
}

/// Row peer/tower-resilience-14: whoever is refused hears when to come back, where that is known.
#[tokio::test(start_paused = true)]
async fn what_is_refused_says_when_to_come_back() {
    async fn refused<S>(service: S) -> (Reason, Option<Duration>)
    where
        S: Service<u32, Error = BoxError> + Clone,
    {
        drop(service.clone().oneshot(1).await);
        let error = service.oneshot(1).await.err().unwrap();
        let rejection = Rejection::of(&*error).unwrap();
        (rejection.reason(), rejection.retry_after())
    }
    let open = breaker(quick_breaker()).layer(dead());
    assert_eq!(refused(open).await, (Reason::BreakerOpen, Some(SECOND)));
    let rate = RateLimitPolicy::per(SECOND, 1).build().unwrap();
    let limited = RateLimitLayer::new(rate).layer(healthy(Duration::ZERO));
    assert_eq!(refused(limited).await, (Reason::RateLimited, Some(SECOND)));
}

/// Law 6: a call that an outer layer gives up, or that an inner one refuses, is no failure either.
#[tokio::test(start_paused = true)]
async fn a_hedge_that_loses_is_no_failure_to_the_breaker_inside() {
    let breaker = breaker(BreakerPolicy::builder().consecutive_failures(1));
    let handle = breaker.handle();
    let slow_then_fast = [Step::answer(1).after(60 * SECOND), Step::answer(2)];
    let dependency = Dependency::new(slow_then_fast);
    let policy = HedgePolicy::builder()
        .fixed(SECOND)
        .without_extra_load_cap();
    let hedge = HedgeLayer::new(policy.build().unwrap(), Plain::idempotent());
    let stack = ServiceBuilder::new().layer(hedge).layer(breaker);
    assert_eq!(
        stack.service(dependency.clone()).oneshot(1).await.unwrap(),
        2
    );
    assert_eq!((dependency.running(), dependency.dropped()), (0, 1));
    let snapshot = handle.snapshot();
    assert_eq!(
        (snapshot.state, snapshot.cancelled),
        (BreakerState::Closed, 1)
    );
}

/// How one operation is made, and what the dependency does with it.
#[derive(Clone, Copy, Debug)]
struct Operation {
    hedged: bool,
    fails: bool,
    /// Since the one before.
    after: u64,
}

fn operation() -> impl Strategy<Value = Operation> {
    (any::<bool>(), any::<bool>(), 0..400_u64).prop_map(|(hedged, fails, after)| Operation {
        hedged,
        fails,
        after,
    })
}

/// Lets operations run side by side, some behind a retry and some behind a hedge, of one budget; returns all sends.
async fn sends(operations: &[Operation], budget: Budget) -> usize {
    let dependency = Script::<u32, u32>::new([]).otherwise(|| Step::answer(7).after(SECOND));
    let dead = dead();
    let hedges = HedgePolicy::builder().fixed(Duration::from_millis(50));
    let hedges = hedges.max_attempts(3).without_extra_load_cap();
    let hedges = hedges.budget(budget.clone()).build().unwrap();
    let hedge = HedgeLayer::new(hedges, Plain::idempotent());
    let retry = retry(budget);
    let mut running = JoinSet::new();
    for &Operation {
        hedged,
        fails,
        after,
    } in operations
    {
        advance(Duration::from_millis(after)).await;
        let inner = if fails { &dead } else { &dependency };
        if hedged {
            running.spawn(hedge.layer(inner.clone()).oneshot(1));
        } else {
            running.spawn(retry.layer(inner.clone()).oneshot(1));
        }
    }
    running.join_all().await;
    dependency.started() + dead.started()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn retries_and_hedges_together_stay_within_one_budget(
        operations in prop::collection::vec(operation(), 1..80),
        ratio in 0.0..=1.0_f64,
        per_second in 0..3_u32,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let (sends, seconds) = runtime.block_on(async {
            let start = mamparo_core::clock::now();
            let budget = Budget::builder().ratio(ratio).min_per_second(per_second);
            let sends = sends(&operations, budget.build().unwrap()).await;
            (sends, start.elapsed().as_secs_f64())
        });
        let paid = operations.len() as f64 * ratio + (seconds + 1.0) * f64::from(per_second);
        let resends = sends - operations.len();
        prop_assert!(resends as f64 <= paid + 1e-6, "{resends} resends, and {paid} paid for");
    }
}
