//! Faults in paused time: which calls they hit, and what their callers see.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body::Body;
use http_body_util::{BodyExt, Empty};
use mamparo_core::http::Http;
use mamparo_core::{Classify, Event, Kind, Observer, Resend, Verdict, What, clock};
use mamparo_testkit::body::{BodyWatch, Frames, ScriptedBody};
use mamparo_testkit::service::{Script, Step, Strict};
use proptest::prelude::*;
use tower::{Layer, Service, ServiceExt};

use super::state::draw;
use super::*;

type Plan = FaultPlan<u32, Whole<u32>>;
type Dependency = Script<u32, u32>;
type Sent = Request<Empty<Bytes>>;

const fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

fn healthy() -> Dependency {
    Dependency::new([]).otherwise(|| Step::answer(2))
}

fn plan(faults: impl IntoIterator<Item = Fault<u32, Whole<u32>>>) -> Plan {
    FaultPlan::new(faults).unwrap().with_seed(7)
}

fn down() -> Fault<u32, Whole<u32>> {
    Fault::error(|| io::Error::from(io::ErrorKind::ConnectionReset))
}

/// Which of a hundred calls fail under a plan.
async fn failures(plan: Plan) -> Vec<bool> {
    let service = FaultLayer::new(plan).layer(healthy());
    let mut failed = Vec::new();
    for call in 0..100 {
        failed.push(service.clone().oneshot(call).await.is_err());
    }
    failed
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_late_by_the_time_that_was_asked_and_its_work_is_done_before() {
    let dependency = healthy();
    let faults = FaultLayer::new(plan([
        Fault::latency(millis(300)),
        Fault::latency(millis(20)),
    ]));
    let start = clock::now();
    let mut call = std::pin::pin!(faults.layer(dependency.clone()).oneshot(1));
    assert!(is_pending(&mut call).await);
    assert_eq!(dependency.finished(), 1, "it is the answer that is late");
    assert_eq!(call.await.unwrap(), 2);
    assert_eq!(clock::now() - start, millis(320), "latencies add up");
}

/// Polls once.
async fn is_pending<F: Future + Unpin>(future: &mut F) -> bool {
    tokio::time::timeout(Duration::ZERO, future).await.is_err()
}

#[tokio::test(start_paused = true)]
async fn a_latency_between_two_times_is_drawn_from_all_of_them() {
    let between = Fault::latency_between(millis(100), millis(200));
    let service = FaultLayer::new(plan([between])).layer(healthy());
    let mut waits = Vec::new();
    for call in 0..100 {
        let start = clock::now();
        service.clone().oneshot(call).await.unwrap();
        waits.push(clock::now() - start);
    }
    waits.sort_unstable();
    assert!(
        waits[0] < millis(115) && waits[99] > millis(185),
        "{waits:?}"
    );
    assert!(waits[0] >= millis(100) && waits[99] <= millis(201));
}

#[tokio::test(start_paused = true)]
async fn an_error_takes_the_place_of_the_call_and_is_judged_as_the_dependencys() {
    let dependency = healthy();
    let service = FaultLayer::new(plan([down()])).layer(dependency.clone());
    let error = service.oneshot(1).await.unwrap_err();
    assert_eq!(dependency.started(), 0);
    let verdict = Classify::<Response<()>>::head(&Http::default(), Err(&error)).verdict;
    assert_eq!(verdict, Verdict::failure(Kind::Reset, Resend::IfIdempotent));
}

#[tokio::test(start_paused = true)]
async fn the_first_of_several_that_hit_is_the_one_that_happens_and_is_late_if_a_latency_hits() {
    let dependency = healthy();
    let faults = FaultLayer::new(plan([
        Fault::response(|| 9),
        down(),
        Fault::latency(millis(50)),
    ]));
    let start = clock::now();
    assert_eq!(
        faults.layer(dependency.clone()).oneshot(1).await.unwrap(),
        9
    );
    assert_eq!(
        (clock::now() - start, dependency.started()),
        (millis(50), 0)
    );
    assert_eq!(faults.handle().injected(), 2, "the error did not happen");
}

/// Law 2: a retry around it would else hold the slot through its backoff.
#[tokio::test(start_paused = true)]
async fn a_call_that_is_not_made_gives_its_ready_slot_back() {
    let inner = Strict::with_slots(healthy(), 1);
    let mut service = FaultLayer::new(plan([down().when(|&call| call == 1)])).layer(inner.clone());
    assert!(service.ready().await.unwrap().call(1).await.is_err());
    assert_eq!(inner.ready_slots(), 0);
    assert_eq!(service.ready().await.unwrap().call(2).await.unwrap(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_meets_the_same_faults_and_another_does_not() {
    let some = |seed| failures(plan([down().rate(0.3)]).with_seed(seed));
    let first = some(7).await;
    assert_eq!(some(7).await, first);
    assert_ne!(some(8).await, first);
    let drawn = FaultPlan::new([down().rate(0.3)]).unwrap();
    let again = plan([down().rate(0.3)]).with_seed(drawn.seed());
    assert_eq!(failures(drawn).await, failures(again).await);
}

/// So that an experiment can be narrowed without becoming another one.
#[tokio::test(start_paused = true)]
async fn a_predicate_picks_requests_and_leaves_the_luck_of_the_others_as_it_was() {
    let all = failures(plan([down().rate(0.5)])).await;
    let even = failures(plan([down().rate(0.5).when(|call| call % 2 == 0)])).await;
    for call in 0..100 {
        assert_eq!(even[call], all[call] && call % 2 == 0);
    }
}

#[tokio::test(start_paused = true)]
async fn faults_are_switched_off_on_and_over_while_the_service_is_in_use() {
    let faults = FaultLayer::new(plan([down()]));
    let (handle, service) = (faults.handle(), faults.layer(healthy()));
    let fails = async || service.clone().oneshot(1).await.is_err();
    assert!(handle.is_on() && fails().await);
    handle.turn_off();
    assert!(!handle.is_on() && !fails().await);
    handle.clone().turn_on();
    assert!(fails().await);
    handle.set(plan([]));
    assert!(!fails().await);
    assert_eq!(handle.injected(), 2);
    handle.set(plan([down().rate(0.3)]));
    let mut failed = Vec::new();
    for _ in 0..100 {
        failed.push(fails().await);
    }
    let fresh = failures(plan([down().rate(0.3)])).await;
    assert_eq!(failed, fresh, "the next call is the first of the new plan");
}

#[derive(Debug, Default)]
struct Heard(Mutex<Vec<&'static str>>);

impl Observer for Heard {
    fn on(&self, event: &Event<'_>) {
        if let What::FaultInjected { fault } = event.what {
            self.0.lock().unwrap().push(fault);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_observes_hears_of_each_fault() {
    let heard = Arc::new(Heard::default());
    let faults = FaultLayer::new(plan([Fault::latency(millis(1)), down(), down()]));
    let service = faults.observer(heard.clone()).layer(healthy());
    service.oneshot(1).await.unwrap_err();
    assert_eq!(*heard.0.lock().unwrap(), ["latency", "error"]);
}

/// Sends one request to a server whose body has these frames, through a fault.
async fn answered(
    fault: Fault<Sent, HttpAnswer>,
    frames: Frames,
) -> (Response<FaultBody<ScriptedBody>>, BodyWatch) {
    let body = ScriptedBody::new(frames);
    let watch = body.watch();
    let inner = Script::noting(|_: &Sent| (), [Step::answer(Response::new(body))]);
    let faults = FaultLayer::http(FaultPlan::new([fault]).unwrap());
    let answer = faults.layer(inner).oneshot(Request::default()).await;
    (answer.unwrap(), watch)
}

fn frames() -> Frames {
    Frames::new().data("hello ").data("world").trailer("x", "y")
}

#[tokio::test(start_paused = true)]
async fn a_dropped_body_breaks_after_so_many_bytes_and_gives_the_inner_one_up() {
    let (answer, watch) = answered(Fault::drop_body(8), frames()).await;
    let mut body = answer.into_body();
    assert!(!body.is_end_stream());
    let mut text = Vec::new();
    let error = loop {
        match body.frame().await.unwrap() {
            Ok(frame) => text.extend(frame.into_data().unwrap()),
            Err(error) => break error,
        }
    };
    assert_eq!(text, b"hello wo");
    let verdict = Classify::<Response<()>>::head(&Http::default(), Err(&error)).verdict;
    assert_eq!(verdict.kind(), Some(Kind::Reset));
    assert!(watch.is_dropped() && body.is_end_stream() && body.frame().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_truncated_body_ends_after_so_many_bytes_without_an_error() {
    let (answer, watch) = answered(Fault::truncate_body(8), frames()).await;
    assert_eq!(answer.body().size_hint().exact(), Some(8));
    let whole = answer.into_body().collect().await.unwrap();
    assert!(whole.trailers().is_none() && watch.is_dropped());
    assert_eq!(whole.to_bytes(), "hello wo");

    let (answer, _) = answered(Fault::truncate_body(0), frames()).await;
    assert!(answer.body().is_end_stream());
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_shorter_passes_whole() {
    for fault in [Fault::drop_body(12), Fault::truncate_body(12)] {
        let (answer, _) = answered(fault, frames()).await;
        assert_eq!(answer.body().size_hint().exact(), Some(11));
        let whole = answer.into_body().collect().await.unwrap();
        assert!(whole.trailers().is_some());
        assert_eq!(whole.to_bytes(), "hello world");
    }
}

#[tokio::test(start_paused = true)]
async fn a_made_up_response_has_its_status_and_body() {
    let busy = || {
        let mut busy = Response::new(Bytes::from("busy"));
        *busy.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        busy
    };
    let (answer, watch) = answered(Fault::response(busy), frames()).await;
    assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(answer.body().size_hint().exact(), Some(4));
    assert_eq!(
        answer.into_body().collect().await.unwrap().to_bytes(),
        "busy"
    );
    assert_eq!(watch.polls(), 0);
}

/// Rows C20 and J11: at build time, by name.
#[test]
fn nonsense_is_refused_by_name() {
    for rate in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
        let error = Plan::new([down().rate(rate)]).unwrap_err();
        assert_eq!(error.setting(), "fault.rate");
    }
    let error = Plan::new([Fault::latency_between(millis(2), millis(1))]).unwrap_err();
    assert_eq!(
        (error.setting(), error.value()),
        ("fault.latency", "2ms..1ms")
    );
    let many = std::iter::repeat_with(down);
    assert_eq!(Plan::new(many).unwrap_err().setting(), "faults");
    assert!(Plan::new((0..MAX_FAULTS).map(|_| down())).is_ok());
}

#[tokio::test(start_paused = true)]
async fn the_longest_latency_overflows_nothing() {
    let longest = || Fault::latency_between(Duration::ZERO, Duration::MAX);
    let service = FaultLayer::new(plan([longest(), longest()])).layer(healthy());
    let hour = tokio::time::timeout(Duration::from_secs(3_600), service.oneshot(1)).await;
    assert!(hour.is_err());
}

proptest! {
    #[test]
    fn a_rate_is_the_share_of_calls_that_are_hit(seed: u64, rate in 0.0..=1.0_f64) {
        const CALLS: u32 = 4_000;
        let plan = plan([down().rate(0.5), Fault::latency(millis(1)).rate(rate)]).with_seed(seed);
        let late = (0..CALLS).filter(|&call| !draw(&plan, call.into(), &call).late.is_zero());
        let share = late.count() as f64 / f64::from(CALLS);
        prop_assert!((share - rate).abs() < 0.05, "{share} for {rate}");
    }

    #[test]
    fn no_rate_never_hits_and_a_whole_one_always_does(seed: u64, call: u64) {
        let plan = plan([down().rate(0.0), Fault::latency(millis(1)).rate(1.0)]).with_seed(seed);
        let drawn = draw(&plan, call, &1);
        prop_assert!(drawn.outcome.is_none());
        prop_assert_eq!(drawn.late, millis(1));
        prop_assert_eq!(drawn.hits().collect::<Vec<_>>(), [1]);
    }
}
