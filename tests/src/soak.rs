//! Half an hour, in virtual time, of callers that wait, go away, leave answers unread or hit a panic, before a dependency
//! whose faults change every minute: afterwards nothing is held by anybody.

use std::io;
use std::time::Duration;

use axum::body::HttpBody;
use bytes::Bytes;
use fastrand::Rng;
use http::{Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use mamparo::attempt_timeout::{AttemptPolicy, AttemptTimeoutLayer};
use mamparo::breaker::{BreakerHandle, BreakerLayer, BreakerPolicy};
use mamparo::bulkhead::{BulkheadHandle, BulkheadLayer, BulkheadPolicy};
use mamparo::deadline::{DeadlineLayer, DeadlinePolicy};
use mamparo::fault::{Fault, FaultHandle, FaultLayer, FaultPlan, HttpAnswer};
use mamparo::hedge::{HedgeLayer, HedgePolicy};
use mamparo::rate_limit::{RateLimitLayer, RateLimitPolicy};
use mamparo::replay::ReplayBody;
use mamparo::retry::{RetryLayer, RetryPolicy};
use mamparo_core::breaker::BreakerState;
use mamparo_core::{BoxError, Budget, clock};
use mamparo_testkit::body::{Frames, ScriptedBody};
use mamparo_testkit::service::{Script, Step};
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tower::util::BoxCloneSyncService;
use tower::{ServiceBuilder, ServiceExt};

const SOAK: Duration = Duration::from_secs(30 * 60);

/// How long one kind of trouble lasts.
const EPOCH: Duration = Duration::from_secs(60);

/// How long after the last call everything may still take: probes age, answers stall.
const LEFT_ALONE: Duration = Duration::from_secs(120);

type Sent = Request<ReplayBody<Full<Bytes>>>;
type Dependency = Script<Sent, Response<ScriptedBody>, ()>;

const fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// A dependency that answers soon, in two pieces, and panics now and then.
fn dependency() -> Dependency {
    Script::noting(|_: &Sent| (), []).otherwise(|| {
        if fastrand::u32(..200) == 0 {
            return Step::panic();
        }
        let frames = Frames::new().data("one").wait(millis(fastrand::u64(..50)));
        let body = ScriptedBody::new(frames.data("two"));
        Step::answer(Response::new(body)).after(millis(fastrand::u64(..50)))
    })
}

/// The trouble of one minute.
fn trouble(rng: &mut Rng) -> FaultPlan<Sent, HttpAnswer> {
    let rate = [0.0, 0.1, 0.5, 1.0];
    let rate = rate[rng.usize(..rate.len())];
    let reset = || io::Error::from(io::ErrorKind::ConnectionReset);
    let busy = || {
        let mut response = Response::new(Bytes::from("busy"));
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        response
    };
    let fault = match rng.u32(..6) {
        0 => Fault::error(reset),
        1 => Fault::response(busy),
        2 => Fault::latency_between(millis(10), millis(20_000)),
        3 => Fault::latency(Duration::MAX),
        4 => Fault::drop_body(3),
        _ => Fault::truncate_body(3),
    };
    let plan = FaultPlan::new([fault.rate(rate)]).unwrap();
    plan.with_seed(rng.u64(..))
}

/// What is held is asked of these.
struct Handles {
    bulkhead: BulkheadHandle,
    breaker: BreakerHandle,
    faults: FaultHandle<Sent, HttpAnswer>,
    budget: Budget,
    dependency: Dependency,
}

impl Handles {
    fn assert_nothing_is_held(&self) {
        let bulkhead = (self.bulkhead.in_flight(), self.bulkhead.queued());
        assert_eq!(bulkhead, (0, 0), "places and waiting calls");
        assert_eq!(self.breaker.snapshot().probes, 0);
        assert_eq!(self.dependency.running(), 0);
        let withdrawal = self.budget.withdraw(clock::now(), None, 0);
        assert!(withdrawal.is_ok(), "a resend is still in flight");
    }
}

/// One attempt: all that stands inside of the layer that resends.
type Attempt = BoxCloneSyncService<Sent, Answer, BoxError>;

/// A whole operation.
type Service = BoxCloneSyncService<Request<Full<Bytes>>, Answer, BoxError>;

type Answer = Response<UnsyncBoxBody<Bytes, BoxError>>;

fn boxed<B>(answer: Response<B>) -> Answer
where
    B: HttpBody<Data = Bytes, Error = BoxError> + Send + 'static,
{
    answer.map(UnsyncBoxBody::new)
}

/// One caller: it waits for the whole answer, or goes away, or leaves the answer unread.
async fn call(service: Service, patience: Duration, reads: bool) {
    let operation = async {
        let answer = service.oneshot(Request::default()).await?;
        if reads {
            drop(answer.into_body().collect().await?);
        }
        Ok::<_, BoxError>(())
    };
    // However it ends: only what it leaves behind matters here.
    drop(timeout(patience, operation).await);
}

/// The layers around what `resends` makes of an attempt.
fn stack(
    trouble: FaultPlan<Sent, HttpAnswer>,
    resends: impl FnOnce(Attempt, Budget) -> Service,
) -> (Service, Handles) {
    let bulkhead = BulkheadPolicy::builder().limit(16).max_waiting(16);
    let bulkhead = BulkheadLayer::http(bulkhead.build().unwrap());
    let breaker = BreakerLayer::http(BreakerPolicy::default());
    let faults = FaultLayer::http(trouble);
    let rate = RateLimitPolicy::per(Duration::from_secs(1), 20).max_wait(millis(200));
    let attempt = AttemptPolicy::builder()
        .timeout(Duration::from_secs(1))
        .body_idle(Duration::from_secs(2));
    let deadline = DeadlinePolicy::within(Duration::from_secs(5)).unwrap();
    let handles = Handles {
        bulkhead: bulkhead.handle(),
        breaker: breaker.handle(),
        faults: faults.handle(),
        // As soon as one resend is not given back, no other is allowed at the end.
        budget: Budget::builder().max_concurrent(1).build().unwrap(),
        dependency: dependency(),
    };
    let attempt = ServiceBuilder::new()
        .map_response(boxed)
        .layer(breaker)
        .layer(RateLimitLayer::http(rate.build().unwrap()))
        .layer(AttemptTimeoutLayer::http(attempt.build().unwrap()))
        .layer(faults)
        .service(handles.dependency.clone());
    let operation = resends(Attempt::new(attempt), handles.budget.clone());
    let service = ServiceBuilder::new()
        .map_response(boxed)
        .layer(DeadlineLayer::http(deadline))
        .layer(bulkhead)
        .service(operation);
    (Service::new(service), handles)
}

/// Lets half an hour pass, and looks for what is still held.
async fn soak(resends: impl FnOnce(Attempt, Budget) -> Service) {
    let mut rng = Rng::with_seed(30);
    fastrand::seed(30);
    let (service, handles) = stack(trouble(&mut rng), resends);
    let tasks = Handle::current().metrics().num_alive_tasks();
    let (start, mut next) = (clock::now(), EPOCH);
    let mut opened = 0;
    let mut callers = JoinSet::new();
    while start.elapsed() < SOAK {
        if start.elapsed() >= next {
            next += EPOCH;
            handles.faults.set(trouble(&mut rng));
        }
        let patience = match rng.u32(..4) {
            0 => millis(rng.u64(..3_000)),
            _ => Duration::from_secs(60),
        };
        callers.spawn(call(service.clone(), patience, rng.u32(..4) > 0));
        while callers.try_join_next().is_some() {}
        opened += usize::from(handles.breaker.state() == BreakerState::Open);
        sleep(millis(rng.u64(..250))).await;
    }
    let injected = handles.faults.injected();
    assert!(
        opened > 100 && injected > 500,
        "there was trouble: {opened}, {injected}"
    );
    assert!(handles.budget.consumed() > 100, "there were resends");

    // Those that met a panic end with it.
    while callers.join_next().await.is_some() {}
    sleep(LEFT_ALONE).await;
    handles.assert_nothing_is_held();
    assert_eq!(Handle::current().metrics().num_alive_tasks(), tasks);

    handles.faults.turn_off();
    for _ in 0..20 {
        call(service.clone(), EPOCH, true).await;
        sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(handles.breaker.state(), BreakerState::Closed);
    handles.assert_nothing_is_held();
}

#[tokio::test(start_paused = true)]
async fn after_half_an_hour_of_random_faults_nothing_is_held_and_no_task_is_left() {
    soak(|attempt, budget| {
        let policy = RetryPolicy::builder().budget(budget).build().unwrap();
        let retry = ServiceBuilder::new().map_response(boxed);
        Service::new(retry.layer(RetryLayer::http(policy)).service(attempt))
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn after_half_an_hour_of_hedges_nothing_is_held_and_no_task_is_left() {
    soak(|attempt, budget| {
        let policy = HedgePolicy::builder().fixed(millis(60)).budget(budget);
        let hedge = ServiceBuilder::new().map_response(boxed);
        let hedge = hedge.layer(HedgeLayer::http(policy.build().unwrap()));
        Service::new(hedge.service(attempt))
    })
    .await;
}
