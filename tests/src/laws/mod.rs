//! The service laws, held by every layer (`docs/service-laws.md`).

use std::time::Duration;

use http::{Request, Response};
use mamparo::attempt_timeout::{AttemptPolicy, AttemptTimeoutLayer};
use mamparo::breaker::{BreakerLayer, BreakerPolicy};
use mamparo::bulkhead::{AdaptiveLimit, BulkheadLayer, BulkheadPolicy, Partitions, Vegas};
use mamparo::catch_panic::CatchPanicLayer;
use mamparo::connect_timeout::ConnectTimeoutLayer;
use mamparo::deadline::{DeadlineLayer, DeadlinePolicy};
use mamparo::fallback::{self, FallbackLayer, FallbackPolicy};
use mamparo::fault::{Fault, FaultLayer, FaultPlan};
use mamparo::hedge::{HedgeLayer, HedgePolicy};
use mamparo::idempotency::{IdempotencyLayer, IdempotencyPolicy, MemoryStore};
use mamparo::idempotency_key::{IdempotencyKeyLayer, KeyPolicy};
use mamparo::load_shed::{LoadShedLayer, LoadShedPolicy};
use mamparo::peek::PeekLayer;
use mamparo::rate_limit::{RateLimitLayer, RateLimitPolicy};
use mamparo::rejection::RejectionLayer;
use mamparo::retry::{RetryLayer, RetryPolicy};
use mamparo::server_deadline::{ServerDeadlineLayer, ServerDeadlinePolicy};
use mamparo::stack::Stack;
use mamparo_core::Plain;
use mamparo_core::clock::SystemClock;
use mamparo_durable::defer::{DeferLayer, DeferPolicy};
use mamparo_durable::engine::Engine;
use mamparo_durable::memory::Memory;
use mamparo_telemetry::{AttemptLayer, OperationLayer, ServerCallLayer};
use mamparo_testkit::body::ScriptedBody;
use mamparo_testkit::laws::{Inner, Laws};
use tower::Layer;

/// Folder names of the layers that the laws are run over; the tidy test refuses a layer that is not here.
pub(crate) const LAYERS: &[&str] = &[
    "attempt",
    "attempt_timeout",
    "breaker",
    "bulkhead",
    "catch_panic",
    "connect_timeout",
    "deadline",
    "defer",
    "fallback",
    "fault",
    "hedge",
    "idempotency",
    "idempotency_key",
    "load_shed",
    "operation",
    "peek",
    "rate_limit",
    "rejection",
    "retry",
    "server",
    "server_deadline",
];

fn deadline() -> DeadlinePolicy {
    DeadlinePolicy::within(Duration::from_secs(3600)).unwrap()
}

fn attempt() -> AttemptPolicy {
    let policy = AttemptPolicy::builder().timeout(Duration::from_secs(3600));
    policy.build().unwrap()
}

fn server() -> ServerDeadlinePolicy {
    let policy = ServerDeadlinePolicy::builder().maximum(Duration::from_secs(3600));
    policy.build().unwrap()
}

fn shed() -> LoadShedPolicy {
    let policy = LoadShedPolicy::builder()
        .max_in_flight(1_000)
        .queue_time(Duration::from_secs(10), Duration::from_secs(60))
        .throttle(2.0, Duration::from_secs(60));
    policy.build().unwrap()
}

fn rate() -> RateLimitPolicy {
    let policy = RateLimitPolicy::per(Duration::from_secs(1), 1_000_000);
    policy.build().unwrap()
}

fn hedge() -> HedgePolicy {
    HedgePolicy::builder().build().unwrap()
}

fn retry() -> RetryPolicy {
    RetryPolicy::default()
}

#[tokio::test(start_paused = true)]
async fn a_deadline_keeps_the_laws() {
    let layer = || DeadlineLayer::new(deadline());
    Laws::plain().assert_all(|inner| layer().layer(inner)).await;
    Laws::plain()
        .assert_gate(|inner| layer().layer(inner))
        .await;
    let http = || DeadlineLayer::http(deadline());
    Laws::http().assert_all(|inner| http().layer(inner)).await;
}

#[tokio::test(start_paused = true)]
async fn an_attempt_timeout_keeps_the_laws() {
    let layer = || AttemptTimeoutLayer::new(attempt());
    Laws::plain().assert_all(|inner| layer().layer(inner)).await;
    Laws::plain()
        .assert_gate(|inner| layer().layer(inner))
        .await;
    let http = || AttemptTimeoutLayer::http(attempt());
    Laws::http().assert_all(|inner| http().layer(inner)).await;
}

/// Rows T9, T10 and E7.
#[tokio::test(start_paused = true)]
async fn a_bulkhead_keeps_the_laws() {
    let layer = || BulkheadLayer::new(BulkheadPolicy::default(), Plain::idempotent());
    Laws::plain().assert_all(|inner| layer().layer(inner)).await;
    Laws::plain()
        .assert_gate(|inner| layer().layer(inner))
        .await;
    let http = || BulkheadLayer::http(BulkheadPolicy::default());
    Laws::http().assert_all(|inner| http().layer(inner)).await;
}

/// With shares of tenants, and a limit that moves.
#[tokio::test(start_paused = true)]
async fn an_adaptive_and_shared_bulkhead_keeps_the_laws() {
    let partitions = Partitions::builder().build().unwrap();
    let adaptive = AdaptiveLimit::builder(Vegas::default()).build().unwrap();
    let policy = BulkheadPolicy::builder().partitions(partitions);
    let policy = policy.adaptive(adaptive).build().unwrap();
    let layer = || BulkheadLayer::new(policy.clone(), Plain::idempotent());
    Laws::plain().assert_all(|inner| layer().layer(inner)).await;
    Laws::plain()
        .assert_gate(|inner| layer().layer(inner))
        .await;
}

/// One place, so that nearly every call waits for it.
#[tokio::test(start_paused = true)]
async fn a_bulkhead_whose_callers_wait_keeps_the_laws() {
    let policy = BulkheadPolicy::builder().limit(1);
    let policy = policy.max_wait(Duration::from_secs(60)).build().unwrap();
    let layer = || BulkheadLayer::new(policy.clone(), Plain::idempotent());
    Laws::plain().assert_all(|inner| layer().layer(inner)).await;
    Laws::plain()
        .assert_gate(|inner| layer().layer(inner))
        .await;
}

#[tokio::test(start_paused = true)]
async fn load_shedding_keeps_the_laws() {
    let layer = || LoadShedLayer::new(shed(), Plain::idempotent());
    Laws::plain().assert_all(|inner| layer().layer(inner)).await;
    Laws::plain()
        .assert_gate(|inner| layer().layer(inner))
        .await;
    let http = || LoadShedLayer::http(shed());
    Laws::http().assert_all(|inner| http().layer(inner)).await;
}

/// Rows T9 and T10, of the limiter.
#[tokio::test(start_paused = true)]
async fn a_rate_limit_keeps_the_laws() {
    let layer = || RateLimitLayer::new(rate());
    Laws::plain().assert_all(|inner| layer().layer(inner)).await;
    Laws::plain()
        .assert_gate(|inner| layer().layer(inner))
        .await;
    let http = || RateLimitLayer::http(rate()).per_tenant();
    Laws::http().assert_all(|inner| http().layer(inner)).await;
}

/// Even when each call must wait for its turn.
#[tokio::test(start_paused = true)]
async fn a_rate_limit_whose_callers_wait_keeps_the_laws() {
    let policy = RateLimitPolicy::per(Duration::from_millis(1), 10).burst(1);
    let policy = policy.max_wait(Duration::from_secs(60)).build().unwrap();
    let layer = || RateLimitLayer::new(policy);
    Laws::plain().assert_all(|inner| layer().layer(inner)).await;
}

/// Rows T9 and T10: a clone shares the state, and is not taken for ready.
#[tokio::test(start_paused = true)]
async fn a_retry_keeps_the_laws() {
    let layer = || RetryLayer::new(retry(), Plain::idempotent());
    Laws::plain().assert_all(|inner| layer().layer(inner)).await;
    let http = || RetryLayer::http(retry());
    Laws::http()
        .assert_all(|inner: Inner<_, _>| http().layer(inner))
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_hedge_keeps_the_laws() {
    let layer = || HedgeLayer::new(hedge(), Plain::idempotent());
    Laws::plain().assert_all(|inner| layer().layer(inner)).await;
    let http = || HedgeLayer::http(hedge());
    Laws::http()
        .assert_all(|inner: Inner<_, _>| http().layer(inner))
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_peek_keeps_the_laws() {
    let layer = PeekLayer::new();
    Laws::http().assert_all(|inner| layer.layer(inner)).await;
}

/// gRPC's owners of resends hold a request even where their policy makes one attempt.
#[tokio::test(start_paused = true)]
async fn grpcs_owners_of_resends_keep_the_laws() {
    let retry = || RetryLayer::grpc(retry());
    Laws::http()
        .assert_all(|inner: Inner<_, _>| retry().layer(inner))
        .await;
    let hedge = || HedgeLayer::grpc(hedge());
    Laws::http()
        .assert_all(|inner: Inner<_, _>| hedge().layer(inner))
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_breaker_keeps_the_laws() {
    let policy = BreakerPolicy::default;
    let layer = || BreakerLayer::new(policy(), Plain::idempotent());
    Laws::plain().assert_all(|inner| layer().layer(inner)).await;
    Laws::plain()
        .assert_gate(|inner| layer().layer(inner))
        .await;
    let http = || BreakerLayer::http(policy());
    Laws::http().assert_all(|inner| http().layer(inner)).await;
    let keyed = || BreakerLayer::by_authority(policy());
    Laws::http().assert_all(|inner| keyed().layer(inner)).await;
}

#[tokio::test(start_paused = true)]
async fn a_fallback_keeps_the_laws() {
    let policy = FallbackPolicy::default;
    let layer = || FallbackLayer::new(policy(), Plain::idempotent(), fallback::value(2));
    Laws::plain().assert_all(|inner| layer().layer(inner)).await;
    let none = || fallback::from_fn(|_| Err::<Response<ScriptedBody>, _>("none"));
    let http = || FallbackLayer::http(policy(), none());
    Laws::http().assert_all(|inner| http().layer(inner)).await;
}

/// All layers in their order, as they are by default.
#[tokio::test(start_paused = true)]
async fn a_stack_keeps_the_laws() {
    let stack = || Stack::http("peer").deadline(deadline()).attempt(attempt());
    Laws::http()
        .assert_all(|inner: Inner<_, _>| stack().layer(inner))
        .await;
    Laws::http()
        .assert_gate(|inner: Inner<_, _>| stack().layer(inner))
        .await;
}

/// With each layer that is off by default turned on.
#[tokio::test(start_paused = true)]
async fn a_stack_with_all_its_layers_keeps_the_laws() {
    let none = || fallback::from_fn(|_| Err::<Response<ScriptedBody>, _>("none"));
    let stack = || {
        Stack::http("peer")
            .deadline(deadline())
            .load_shed(shed())
            .idempotency_key(KeyPolicy::default())
            .operation_breaker(BreakerPolicy::default())
            .hedge(hedge())
            .rate_limit(rate())
            .attempt(attempt())
            .fallback(FallbackPolicy::default(), none())
            .telemetry(OperationLayer::http("peer"), AttemptLayer::http("peer"))
    };
    Laws::http()
        .assert_all(|inner: Inner<_, _>| stack().layer(inner))
        .await;
}

/// With each layer off that can be: what is off must not get in the way.
#[tokio::test(start_paused = true)]
async fn a_stack_without_its_layers_keeps_the_laws() {
    let once = RetryPolicy::builder().max_attempts(1).build().unwrap();
    let endless = AttemptPolicy::builder().no_timeout().no_body_idle();
    let stack = || {
        Stack::http("peer")
            .deadline(DeadlinePolicy::none())
            .bulkhead(BulkheadPolicy::off())
            .retry(once.clone())
            .breaker(BreakerPolicy::off())
            .attempt(endless.build().unwrap())
    };
    Laws::http()
        .assert_all(|inner: Inner<_, _>| stack().layer(inner))
        .await;
}

#[tokio::test(start_paused = true)]
async fn an_operation_keeps_the_laws() {
    let layer = || OperationLayer::new("peer", Plain::idempotent());
    Laws::plain().assert_all(|inner| layer().layer(inner)).await;
    let http = || OperationLayer::http("peer");
    Laws::http().assert_all(|inner| http().layer(inner)).await;
    let grpc = || OperationLayer::grpc("peer");
    Laws::http().assert_all(|inner| grpc().layer(inner)).await;
}

#[tokio::test(start_paused = true)]
async fn an_attempt_keeps_the_laws() {
    let http = || AttemptLayer::http("peer");
    Laws::http().assert_all(|inner| http().layer(inner)).await;
    let grpc = || AttemptLayer::grpc("peer");
    Laws::http().assert_all(|inner| grpc().layer(inner)).await;
}

#[tokio::test(start_paused = true)]
async fn a_record_of_served_calls_keeps_the_laws() {
    let http = ServerCallLayer::http;
    Laws::http().assert_all(|inner| http().layer(inner)).await;
    let grpc = ServerCallLayer::grpc;
    Laws::http().assert_all(|inner| grpc().layer(inner)).await;
}

#[tokio::test(start_paused = true)]
async fn an_idempotency_key_keeps_the_laws() {
    let layer = || IdempotencyKeyLayer::new(KeyPolicy::default());
    Laws::http().assert_all(|inner| layer().layer(inner)).await;
}

/// Of requests without a key, and of those with one: each run makes an instance of its own ready.
#[tokio::test(start_paused = true)]
async fn recognising_keys_keeps_the_laws() {
    let layer = || {
        let policy = IdempotencyPolicy::for_all_callers().left_behind(0).build();
        IdempotencyLayer::new(MemoryStore::new(), policy.unwrap())
    };
    Laws::http().assert_all(|inner| layer().layer(inner)).await;
    Laws::http().assert_gate(|inner| layer().layer(inner)).await;
    let keyed = || {
        Laws::new(
            || {
                let key = fastrand::u64(..);
                let request = Request::post("/").header("idempotency-key", key);
                request.body(ScriptedBody::empty()).unwrap()
            },
            || Response::new(ScriptedBody::new("ok")),
        )
    };
    keyed().assert_all(|inner| layer().layer(inner)).await;
    keyed().assert_gate(|inner| layer().layer(inner)).await;
}

#[tokio::test(start_paused = true)]
async fn a_connect_timeout_keeps_the_laws() {
    let layer = || ConnectTimeoutLayer::new(Duration::from_secs(3600)).unwrap();
    Laws::plain().assert_all(|inner| layer().layer(inner)).await;
    Laws::plain()
        .assert_gate(|inner| layer().layer(inner))
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_server_deadline_keeps_the_laws() {
    let layer = || ServerDeadlineLayer::new(server());
    Laws::plain().assert_all(|inner| layer().layer(inner)).await;
    Laws::plain()
        .assert_gate(|inner| layer().layer(inner))
        .await;
    let http = || ServerDeadlineLayer::http(server());
    Laws::http().assert_all(|inner| http().layer(inner)).await;
}

#[tokio::test(start_paused = true)]
async fn a_fence_around_panics_keeps_the_laws() {
    let layer = CatchPanicLayer::new;
    Laws::http().assert_all(|inner| layer().layer(inner)).await;
}

#[tokio::test(start_paused = true)]
async fn a_rejection_keeps_the_laws() {
    let layer = RejectionLayer::default;
    Laws::http().assert_all(|inner| layer().layer(inner)).await;
}

/// With no fault, and with faults that are all too short to be seen.
#[tokio::test(start_paused = true)]
async fn a_fault_keeps_the_laws() {
    let plain = || FaultLayer::new(FaultPlan::new([Fault::latency(Duration::ZERO)]).unwrap());
    Laws::plain().assert_all(|inner| plain().layer(inner)).await;
    let http = || FaultLayer::http(FaultPlan::new([Fault::drop_body(u64::MAX)]).unwrap());
    Laws::http().assert_all(|inner| http().layer(inner)).await;
}

/// Of requests that only ask, of those that may be deferred, and of those that are, for their answer is a refusal.
#[tokio::test(start_paused = true)]
async fn deferring_keeps_the_laws() {
    let layer = || {
        let engine = Engine::builder(Memory::new(SystemClock).backend()).build();
        let policy = DeferPolicy::builder("call").rejections(true).failures(true);
        DeferLayer::new(engine.unwrap(), policy.build().unwrap())
    };
    Laws::http().assert_all(|inner| layer().layer(inner)).await;
    Laws::http().assert_gate(|inner| layer().layer(inner)).await;
    let charge = || Request::post("/").body(ScriptedBody::new("5")).unwrap();
    let answered = Laws::new(charge, || Response::new(ScriptedBody::new("ok")));
    answered.assert_all(|inner| layer().layer(inner)).await;
    answered.assert_gate(|inner| layer().layer(inner)).await;
    let refused = Laws::new(charge, || {
        let refusal = Response::builder().status(503);
        refusal.body(ScriptedBody::new("not now")).unwrap()
    });
    refused.assert_all(|inner| layer().layer(inner)).await;
    refused.assert_gate(|inner| layer().layer(inner)).await;
}
