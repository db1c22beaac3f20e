//! Calls that are shed for the time that they waited.

use std::sync::Arc;
use std::time::Duration;

use mamparo_core::clock;
use mamparo_core::clock::Instant;
use mamparo_testkit::service::{Script, Step};
use tower::limit::ConcurrencyLimitLayer;
use tower::{Layer, ServiceExt};

use super::super::*;
use super::cast::*;

const TARGET: Duration = millis(5);
const INTERVAL: Duration = millis(100);

fn queue_time() -> LoadShedBuilder {
    policy().queue_time(TARGET, INTERVAL)
}

/// A request that has waited so long when it comes here.
#[derive(Clone, Copy, Debug)]
struct Waited(Duration);

fn arrived(request: &Waited) -> Option<Instant> {
    clock::now().checked_sub(request.0)
}

fn answers() -> Script<Waited, u32> {
    Script::new([]).otherwise(|| Step::answer(1))
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_does_not_drain_is_shed_from_and_one_that_does_is_not() {
    let rules = Rules::default();
    let layer = shed(queue_time())
        .observer(Arc::new(rules.clone()))
        .arrived(arrived);
    let jobs = layer.layer(answers());
    let passes = async |wait: u64| {
        let passed = jobs.clone().oneshot(Waited(millis(wait))).await.is_ok();
        tokio::time::sleep(millis(10)).await;
        passed
    };
    tokio::time::sleep(millis(1_000)).await;
    // A burst: long waits, but the queue drains within the interval.
    for _ in 0..8 {
        assert!(passes(50).await);
    }
    assert!(passes(0).await && passes(50).await);
    for _ in 0..8 {
        assert!(passes(50).await);
    }
    // Now it does not drain for a whole interval.
    while !layer.is_overloaded() {
        passes(50).await;
    }
    assert!(!passes(50).await, "it waited more than twice the target");
    assert!(passes(10).await, "it waited twice the target, and no more");
    assert!(
        rules
            .heard()
            .iter()
            .all(|heard| *heard == ("queue_time", None))
    );
    // One that waited no longer than the target shows that it drains.
    passes(5).await;
    tokio::time::sleep(INTERVAL).await;
    assert!(passes(50).await && !layer.is_overloaded());
}

/// A server that can do 20 at once, 50 ms each, and gets more than twice as much as that.
#[tokio::test(start_paused = true)]
async fn under_more_than_twice_the_load_what_passes_has_not_waited_long() {
    let (work, gap) = (millis(50), millis(1));
    let peer: Script<Instant, Duration> =
        Script::new([]).otherwise(move || Step::answer(Duration::ZERO).after(work));
    let limited = ConcurrencyLimitLayer::new(20).layer(peer.clone());
    let layer = shed(policy().queue_time(millis(20), INTERVAL));
    let jobs = layer.layer(limited);
    let mut calls = Vec::new();
    let start = clock::now();
    while start.elapsed() < Duration::from_secs(4) {
        let (jobs, began) = (jobs.clone(), clock::now());
        calls.push(tokio::spawn(async move {
            jobs.oneshot(began).await.map(|_| (began, began.elapsed()))
        }));
        tokio::time::sleep(gap).await;
    }
    let (mut late, mut passed, mut refused) = (Duration::ZERO, 0_u32, 0_u32);
    for call in calls {
        match call.await.unwrap() {
            Ok((began, took)) => {
                passed += 1;
                if began - start > Duration::from_secs(2) {
                    late = late.max(took);
                }
            }
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 1_800, "{refused} were refused");
    // Nearly all that the server could do in that time was done.
    assert!(passed > 1_400, "{passed} passed");
    assert!(late < millis(500), "{late:?} after two seconds");
}

/// Without a stamp, a call that finds the inner service ready has not waited.
#[tokio::test(start_paused = true)]
async fn where_nobody_noted_when_a_call_arrived_only_its_wait_here_counts() {
    let jobs = shed(queue_time()).layer(answers());
    for _ in 0..100 {
        assert!(jobs.clone().oneshot(Waited(millis(900))).await.is_ok());
        tokio::time::sleep(millis(10)).await;
    }
}

/// The operation's begin is its arrival: here, a wait between the deadline's layer and this one.
#[tokio::test(start_paused = true)]
async fn the_time_since_the_operation_began_counts_as_a_wait() {
    use crate::deadline::{DeadlineLayer, DeadlinePolicy};
    let layer = shed(queue_time());
    let inner = layer.layer(answers());
    let slow = tower::service_fn(move |request: Waited| {
        let inner = inner.clone();
        async move {
            tokio::time::sleep(request.0).await;
            inner.oneshot(request).await
        }
    });
    let jobs =
        DeadlineLayer::new(DeadlinePolicy::within(Duration::from_secs(10)).unwrap()).layer(slow);
    let mut last = Ok(1);
    for _ in 0..10 {
        last = jobs.clone().oneshot(Waited(millis(30))).await;
    }
    assert!(layer.is_overloaded());
    assert_shed(last);
}
