//! What the protecting layers leave for whoever records a call: their state, their decision, the wait, the limit in force.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::time::Duration;

use mamparo::breaker::{BreakerLayer, BreakerPolicy};
use mamparo::bulkhead::{BulkheadLayer, BulkheadPolicy};
use mamparo::load_shed::{LoadShedLayer, LoadShedPolicy};
use mamparo::rate_limit::{RateLimitLayer, RateLimitPolicy};
use mamparo_core::breaker::{BreakerDecision, BreakerState};
use mamparo_core::clock;
use mamparo_core::{BoxError, CallContext, LayerKind, Plain, Scope};
use mamparo_testkit::service::{Script, Step};
use tower::{Layer, Service, ServiceExt};

const MS: Duration = Duration::from_millis(1);

type Peer = Script<u32, u32>;

fn peer() -> Peer {
    Script::new([]).otherwise(|| Step::answer(7))
}

fn slow() -> Peer {
    Script::new([]).otherwise(|| Step::answer(7).after(30 * MS))
}

/// Makes a call within an operation, and returns what was noted by its end.
async fn noted<S>(service: S) -> CallContext
where
    S: Service<u32, Response = u32, Error = BoxError>,
{
    noted_by(service.oneshot(1)).await
}

async fn noted_by(call: impl Future<Output = Result<u32, BoxError>>) -> CallContext {
    let mut scope = Scope::join(LayerKind::Operation, "catalog".into());
    scope.set_started(clock::now());
    let mut call = pin!(call);
    let _outcome = poll_fn(|cx| scope.enter(|| call.as_mut().poll(cx))).await;
    scope.context()
}

#[tokio::test(start_paused = true)]
async fn a_breaker_notes_its_state_and_what_it_decided() {
    use BreakerDecision::{Admitted, Probe, Rejected, Shadowed};
    let policy = BreakerPolicy::builder().consecutive_failures(1);
    let peer = peer();
    let layer = BreakerLayer::new(policy.clone().build().unwrap(), Plain::idempotent());
    let breaker = layer.layer(peer.clone());
    let says = async || noted(breaker.clone()).await.breaker();
    assert_eq!(says().await, Some((BreakerState::Closed, Admitted)));
    peer.push(Step::error("down"));
    assert_eq!(says().await, Some((BreakerState::Closed, Admitted)));
    assert_eq!(says().await, Some((BreakerState::Open, Rejected)));
    tokio::time::sleep(7_000 * MS).await;
    assert_eq!(says().await, Some((BreakerState::HalfOpen, Probe)));
    layer.handle().disable();
    assert_eq!(says().await, Some((BreakerState::Disabled, Admitted)));
    layer.handle().force_open();
    assert_eq!(says().await, Some((BreakerState::ForcedOpen, Rejected)));

    let shadow = BreakerLayer::new(policy.shadow(true).build().unwrap(), Plain::idempotent());
    shadow.handle().force_open();
    let passed = noted(shadow.layer(peer)).await.breaker();
    assert_eq!(passed, Some((BreakerState::ForcedOpen, Shadowed)));
}

#[tokio::test(start_paused = true)]
async fn a_bulkhead_notes_the_wait_and_the_limit_in_force() {
    let policy = BulkheadPolicy::builder().limit(1).max_waiting(1);
    let layer = BulkheadLayer::new(policy.build().unwrap(), Plain::idempotent());
    let bulkhead = layer.layer(slow());
    let says = |noted: CallContext| (noted.queue_wait(), noted.limit_in_force());
    let (first, second, refused) = tokio::join!(
        noted(bulkhead.clone()),
        noted(bulkhead.clone()),
        noted(bulkhead.clone())
    );
    assert_eq!(says(first), (Some(Duration::ZERO), Some(1)));
    assert_eq!(says(second), (Some(30 * MS), Some(1)));
    assert_eq!(says(refused), (Some(Duration::ZERO), Some(1)));

    layer.handle().resize(8).unwrap();
    assert_eq!(says(noted(bulkhead).await), (Some(Duration::ZERO), Some(8)));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_gave_up_its_wait_has_that_noted() {
    let policy = BulkheadPolicy::builder().limit(1).max_wait(10 * MS);
    let layer = BulkheadLayer::new(policy.build().unwrap(), Plain::idempotent());
    let bulkhead = layer.layer(slow());
    let (_, gave_up) = tokio::join!(noted(bulkhead.clone()), noted(bulkhead));
    assert_eq!(gave_up.queue_wait(), Some(10 * MS));
}

#[tokio::test(start_paused = true)]
async fn a_rate_limit_notes_a_wait_and_nothing_where_there_was_none() {
    let policy = RateLimitPolicy::per(1_000 * MS, 10).burst(1);
    let policy = policy.max_wait(1_000 * MS).build().unwrap();
    let limit = RateLimitLayer::new(policy).layer(peer());
    let first = noted(limit.clone()).await;
    assert_eq!(first.rate_limit_wait(), None);
    let second = noted(limit).await;
    assert_eq!(second.rate_limit_wait(), Some(100 * MS));
}

#[tokio::test(start_paused = true)]
async fn load_shedding_notes_how_long_a_call_has_waited_for_its_turn() {
    let policy = LoadShedPolicy::builder()
        .queue_time(50 * MS, 100 * MS)
        .max_in_flight(20);
    let layer = LoadShedLayer::new(policy.build().unwrap(), Plain::idempotent());
    let service = layer.layer(peer());
    let at_once = noted(service.clone()).await;
    assert_eq!(at_once.queue_wait(), None);
    let late = noted_by(async {
        tokio::time::sleep(20 * MS).await;
        service.oneshot(1).await
    });
    let late = late.await;
    assert_eq!(late.queue_wait(), Some(20 * MS));
    assert_eq!(late.limit_in_force(), Some(20));
}
