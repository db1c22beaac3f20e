//! What the protecting layers leave for whoever records a call: their state, their decision, the wait, the limit in force.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::time::Duration;

use mamparo::breaker::{BreakerLayer, BreakerPolicy};
use mamparo::bulkhead::{BulkheadLayer, BulkheadPolicy};
use mamparo::hedge::{HedgeLayer, HedgePolicy};
use mamparo::load_shed::{LoadShedLayer, LoadShedPolicy};
use mamparo::rate_limit::{RateLimitLayer, RateLimitPolicy};
use mamparo::retry::{RetryLayer, RetryPolicy};
use mamparo_core::breaker::{BreakerDecision, BreakerState};
use mamparo_core::clock;
use mamparo_core::{
    Backoff, BoxError, Budget, CallContext, Classify, Jitter, Kind, LayerKind, Plain, Resend,
    Scope, Verdict,
};
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

/// Row P-D9: how often it was sent again, and for how long no attempt was under way.
#[tokio::test(start_paused = true)]
async fn a_retry_notes_its_resends_and_the_pauses_before_them() {
    let backoff = Backoff::builder().jitter(Jitter::None).build().unwrap();
    let policy = RetryPolicy::builder().backoff(backoff).build().unwrap();
    let retry = RetryLayer::new(policy, Plain::idempotent()).dependency("catalog");
    let failing = Script::new([
        Step::error(std::io::Error::other("down")).after(MS),
        Step::error(std::io::Error::other("down")).after(MS),
        Step::answer(3),
    ]);
    let noted = noted(retry.layer(failing)).await.resends();
    assert_eq!((noted.retries, noted.hedges), (2, 0));
    assert_eq!(noted.pause(), 300 * MS, "100 ms, then 200 ms");

    let noted = self::noted(retry.layer(peer())).await.resends();
    assert_eq!((noted.retries, noted.pause()), (0, Duration::ZERO));
}

/// Row P-D9: a hedge beside another attempt is no pause, and one that stands in for the last is.
#[tokio::test(start_paused = true)]
async fn a_hedge_notes_what_it_sent_and_the_pauses_without_an_attempt() {
    let policy = HedgePolicy::builder()
        .fixed(100 * MS)
        .without_extra_load_cap()
        .budget(Budget::unlimited())
        .max_attempts(3)
        .build()
        .unwrap();
    let hedge = HedgeLayer::new(policy.clone(), Plain::idempotent()).dependency("catalog");
    let beside = Script::new([
        Step::answer(3).after(150 * MS),
        Step::answer(3).after(150 * MS),
    ]);
    let noted = noted(hedge.layer(beside)).await.resends();
    assert_eq!((noted.retries, noted.hedges), (0, 1));
    assert_eq!(noted.pause(), Duration::ZERO);

    let wait = 80 * MS;
    let asks =
        Plain::idempotent().refine(
            move |outcome: Result<&u32, &BoxError>, verdict| match outcome {
                Ok(0) => Verdict::failure(Kind::Unavailable, Resend::IfIdempotent).after(wait),
                _ => verdict,
            },
        );
    let hedge = HedgeLayer::new(policy, asks).dependency("catalog");
    let alone = Script::new([Step::answer(0).after(MS), Step::answer(3)]);
    let noted = self::noted(hedge.layer(alone)).await.resends();
    assert_eq!((noted.retries, noted.hedges, noted.pause()), (0, 1, wait));
}
