//! A deadline as its caller sees it: scripted services, paused time.

use std::convert::Infallible;
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use http::{HeaderMap, Request, Response};
use http_body_util::BodyExt;
use mamparo_core::grpc::Code;
use mamparo_core::{
    BoxError, CallContext, Deadline, Dependency, Event, Kind, LayerKind, Observer, Reason,
    Rejection, Resend, Reserve, TransportError, What, clock,
};
use mamparo_testkit::body::{Frames, ScriptedBody};
use mamparo_testkit::service::{Door, NeverReady, Script, Step};
use tower::{Layer, Service, ServiceBuilder, ServiceExt};

use super::*;
use crate::wire::{HttpWire, NoWire};

const CATALOG: &str = "catalog";

const fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

fn within(limit: Duration) -> DeadlineLayer<NoWire> {
    DeadlineLayer::new(DeadlinePolicy::within(limit).unwrap()).dependency(CATALOG)
}

fn answer() -> Response<ScriptedBody> {
    Response::new(ScriptedBody::new("ok"))
}

fn request(headers: &[(&'static str, &str)]) -> Request<()> {
    let mut request = Request::new(());
    for (name, value) in headers {
        request.headers_mut().insert(*name, value.parse().unwrap());
    }
    request
}

/// Notes what a transport would see: what remains, and the headers.
type Peer = Script<Request<()>, Response<ScriptedBody>, (Option<Duration>, HeaderMap)>;

fn peer() -> Peer {
    let note = |request: &Request<()>| (remaining(), request.headers().clone());
    Script::noting(note, []).otherwise(|| Step::answer(answer()))
}

fn remaining() -> Option<Duration> {
    let deadline = CallContext::current().deadline();
    deadline.map(|deadline| deadline.remaining(clock::now()))
}

/// Makes a call as a handler would that has so long to go.
async fn called_within<T>(limit: Option<Duration>, call: impl Future<Output = T>) -> T {
    let mut context = CallContext::join(LayerKind::Operation, Dependency::UNNAMED);
    if let Some(limit) = limit {
        context = context.with_deadline(Deadline::after(clock::now(), limit));
    }
    let mut call = std::pin::pin!(call);
    std::future::poll_fn(|cx| context.enter(|| call.as_mut().poll(cx))).await
}

fn rejection(error: &BoxError) -> &Rejection {
    Rejection::of(&**error).expect("a rejection")
}

#[derive(Clone, Debug, Default)]
struct Heard(Arc<Mutex<Vec<String>>>);

impl Observer for Heard {
    fn on(&self, event: &Event<'_>) {
        let text = match event.what {
            What::Rejected(rejection) => rejection.to_string(),
            What::MalformedDeadline { header } => format!("malformed {header}"),
            What::LateWork { late } if late >= millis(5) => "late".to_owned(),
            _ => format!("{:?}", event.what),
        };
        self.0.lock().unwrap().push(text);
    }
}

impl Heard {
    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    fn observer(&self) -> Arc<dyn Observer> {
        Arc::new(self.clone())
    }
}

/// Rows D4 and D8, DL-03: own limit, what the caller has left, what the request carries.
#[tokio::test(start_paused = true)]
async fn the_smallest_of_all_limits_binds_and_no_stale_header_is_sent_on() {
    let cases = [
        (5_000, None, None, 5_000),
        (5_000, Some(300), None, 300),
        (200, Some(300), None, 200),
        (5_000, Some(300), Some("250"), 250),
        (5_000, None, Some("9000"), 5_000),
        (5_000, None, Some("4000"), 4_000),
    ];
    for (own, callers, carried, binds) in cases {
        let peer = peer();
        let policy = DeadlinePolicy::within(millis(own)).unwrap();
        let service = DeadlineLayer::http(policy).layer(peer.clone());
        let header = carried.map(|value| ("x-request-timeout-ms", value));
        let call = service.oneshot(request(header.as_slice()));
        called_within(callers.map(millis), call).await.unwrap();
        let (seen, headers) = peer.requests().remove(0);
        assert_eq!(seen, Some(millis(binds)), "{own} {callers:?} {carried:?}");
        assert!(headers.is_empty(), "{headers:?}");
    }
}

/// Rows P-A3 and D8, GE-07.
#[tokio::test(start_paused = true)]
async fn nothing_is_sent_when_nothing_remains() {
    let carried = request(&[("grpc-timeout", "0n")]);
    for (callers, request) in [(Some(0), request(&[])), (None, carried)] {
        let (peer, heard) = (peer(), Heard::default());
        let layer = DeadlineLayer::http(DeadlinePolicy::default()).dependency(CATALOG);
        let service = layer.observer(heard.observer()).layer(peer.clone());
        let call = called_within(callers.map(millis), service.oneshot(request));
        let error = call.await.unwrap_err();
        assert!(rejection(&error).is_deadline_exceeded() && !rejection(&error).sent());
        assert_eq!(error.to_string(), "catalog: deadline exceeded: not sent");
        assert_eq!((peer.started(), heard.all()), (0, vec![error.to_string()]));
    }
}

/// Rows P-A10 and T5: the gate is open, so that the wait counts, and ends.
#[tokio::test(start_paused = true)]
async fn an_inner_service_that_is_never_ready_is_answered_for_at_the_deadline() {
    let start = clock::now();
    let service = within(millis(200)).layer(NeverReady::<u32>::new());
    let error = service.oneshot(1).await.unwrap_err();
    assert_eq!(clock::now() - start, millis(200));
    assert!(rejection(&error).is_deadline_exceeded() && !rejection(&error).sent());
}

/// Row P-A10.
#[tokio::test(start_paused = true)]
async fn the_wait_for_readiness_counts_against_the_deadline() {
    let (door, peer) = (Door::closed(), Script::new([Step::hang()]));
    let service = within(millis(200)).layer(door.before(peer.clone()));
    let start = clock::now();
    let call = tokio::spawn(service.oneshot("question"));
    tokio::time::sleep(millis(150)).await;
    door.open();
    let error: BoxError = call.await.unwrap().map(|(): ()| ()).unwrap_err();
    assert_eq!((clock::now() - start, peer.started()), (millis(200), 1));
    assert!(rejection(&error).sent());
}

/// Rows D1 and D8, `DL-08`.
#[tokio::test(start_paused = true)]
async fn a_slow_call_is_dropped_at_the_deadline_and_its_caller_told() {
    let heard = Heard::default();
    let slow = Script::<u32, u32>::new([Step::answer(1).after(millis(400))]);
    let layer = within(millis(200)).observer(heard.observer());
    let start = clock::now();
    let mut call = std::pin::pin!(layer.layer(slow.clone()).call(1));
    let error = call.as_mut().await.unwrap_err();
    assert_eq!(clock::now() - start, millis(200));
    assert_eq!(slow.dropped(), 1, "and not only when the caller lets go");
    assert!(rejection(&error).is_deadline_exceeded() && rejection(&error).sent());
    let text = "catalog: deadline exceeded: no answer within 200ms";
    assert_eq!(
        (error.to_string(), heard.all()),
        (text.into(), vec![text.into()])
    );
}

/// Row D3: a caller that goes away is not a deadline.
#[tokio::test(start_paused = true)]
async fn a_caller_that_cancels_is_not_reported_as_a_rejection() {
    let heard = Heard::default();
    let peer = Script::<u32, u32>::new([Step::hang()]);
    let layer = within(millis(200)).observer(heard.observer());
    let call = layer.layer(peer.clone()).oneshot(1);
    let cancelled = tokio::time::timeout(millis(199), call).await;
    assert!(cancelled.is_err());
    assert_eq!((peer.dropped(), heard.all()), (1, Vec::new()));
}

/// Row D4: of two limits around each other the smaller binds, and says so.
#[tokio::test(start_paused = true)]
async fn an_outer_deadline_binds_an_inner_one() {
    let slow = Script::<u32, u32>::new([Step::hang(), Step::hang()]);
    // The inner operation ends before the outer one's reserve begins, so that its error can still be delivered.
    for (limits, end) in [([100, 30_000], 95), ([30_000, 100], 100)] {
        let [outer, inner] = limits.map(|limit| within(millis(limit)));
        let start = clock::now();
        let call = (outer, inner.dependency("psp"))
            .layer(slow.clone())
            .oneshot(1);
        let error = call.await.unwrap_err();
        assert_eq!(clock::now() - start, millis(end));
        assert!(rejection(&error).is_deadline_exceeded());
    }
}

/// Row D8, P-A10: woken too late, as on a busy machine, when both have come meanwhile.
#[tokio::test(start_paused = true)]
async fn a_call_whose_deadline_passed_in_the_queue_is_not_sent_although_its_turn_has_come() {
    let (door, peer) = (Door::closed(), peer());
    let mut call = std::pin::pin!(
        within(millis(100))
            .layer(door.before(peer.clone()))
            .call(request(&[]))
    );
    let mut cx = Context::from_waker(Waker::noop());
    assert!(call.as_mut().poll(&mut cx).is_pending());
    tokio::time::advance(millis(200)).await;
    door.open();
    let error = call.await.unwrap_err();
    assert!(!rejection(&error).sent());
    assert_eq!(peer.started(), 0);
}

/// Polls once, without a runtime: whoever makes a timer panics.
fn at_once<F: Future>(future: F) -> F::Output {
    let mut future = std::pin::pin!(future);
    match future
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
    {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("an answer that is ready at once"),
    }
}

/// Row D6.
#[test]
fn a_hundred_instant_answers_leave_no_timer_behind() {
    let policy = DeadlinePolicy::within(Duration::from_secs(30)).unwrap();
    let mut service = DeadlineLayer::http(policy).layer(peer());
    for _ in 0..100 {
        let ready = service.poll_ready(&mut Context::from_waker(Waker::noop()));
        assert!(matches!(ready, Poll::Ready(Ok(()))));
        let answer = at_once(service.call(request(&[]))).unwrap();
        assert_eq!(
            at_once(answer.into_body().collect()).unwrap().to_bytes(),
            "ok"
        );
    }
    let mut failing = within(millis(1)).layer(Script::<u32, u32>::new([Step::error("no")]));
    assert!(at_once(failing.call(1)).is_err());
}

/// Row D5.
#[tokio::test(start_paused = true)]
async fn a_slow_body_is_read_whole_within_the_deadline_and_cut_at_it() {
    for (wait, whole) in [(450, true), (550, false)] {
        let frames = Frames::new()
            .data("he")
            .wait(millis(wait))
            .data("ad")
            .wait(millis(500))
            .data("s");
        let (body, heard) = (ScriptedBody::new(frames), Heard::default());
        let watch = body.watch();
        let peer = Script::<u32, _>::new([Step::answer(Response::new(body))]);
        let layer = DeadlineLayer::http(DeadlinePolicy::within(millis(1_000)).unwrap());
        let layer = layer.dependency(CATALOG).observer(heard.observer());
        let service = ServiceBuilder::new()
            .layer(layer)
            .map_request(|_: Request<()>| 1)
            .service(peer);
        let start = clock::now();
        let answer = service.oneshot(request(&[])).await.unwrap();
        assert_eq!(clock::now(), start, "the head is not waited with");
        let mut body = answer.into_body();
        assert_eq!(
            body.frame().await.unwrap().unwrap().into_data().unwrap(),
            "he"
        );
        assert_eq!(
            body.frame().await.unwrap().unwrap().into_data().unwrap(),
            "ad"
        );
        let last = body.frame().await.unwrap();
        if whole {
            assert_eq!(last.unwrap().into_data().unwrap(), "s");
            assert!(body.frame().await.is_none() && heard.all().is_empty());
            continue;
        }
        assert_eq!(clock::now() - start, millis(1_000));
        assert!(rejection(&last.unwrap_err()).is_deadline_exceeded());
        assert_eq!(
            watch.dropped_at(),
            Some(clock::now()),
            "whoever sends it is let go"
        );
        assert!(body.frame().await.is_none());
        assert_eq!(heard.all(), ["catalog: deadline exceeded"]);
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_limit_of_its_own_only_the_callers_deadline_binds() {
    let none = || DeadlineLayer::http(DeadlinePolicy::none()).layer(peer());
    let alone = peer();
    let service = DeadlineLayer::http(DeadlinePolicy::none()).layer(alone.clone());
    service.oneshot(request(&[])).await.unwrap();
    assert_eq!(alone.requests()[0].0, None);
    let late = called_within(Some(millis(0)), none().oneshot(request(&[]))).await;
    assert!(rejection(&late.unwrap_err()).is_deadline_exceeded());
    let slow =
        DeadlineLayer::new(DeadlinePolicy::none())
            .layer(Script::<u32, u32>::new([
                Step::answer(7).after(Duration::from_secs(86_400))
            ]));
    assert_eq!(slow.oneshot(1).await.unwrap(), 7);
}

#[tokio::test(start_paused = true)]
async fn what_is_called_sees_the_operation_and_nothing_of_it_stays_behind() {
    let inside = Script::<u32, (), CallContext>::noting(|_| CallContext::current(), [])
        .otherwise(|| Step::answer(()));
    within(millis(400))
        .layer(inside.clone())
        .oneshot(1)
        .await
        .unwrap();
    let seen = inside.requests().remove(0);
    assert_eq!((seen.dependency(), seen.attempt()), (CATALOG.into(), 1));
    assert_eq!(seen.started(), Some(clock::now()));
    assert!(seen.operation().is_some());
    assert!(CallContext::current().operation().is_none());
}

/// 5 %, at most 50 ms, unless told otherwise.
#[tokio::test(start_paused = true)]
async fn the_reserve_is_kept_back_from_whoever_asks_how_long_an_attempt_may_take() {
    let fixed = DeadlinePolicy::within(millis(200))
        .unwrap()
        .reserve(Reserve::fixed(millis(150)));
    let policies = [
        (DeadlinePolicy::within(millis(200)).unwrap(), 190),
        (DeadlinePolicy::within(millis(10_000)).unwrap(), 9_950),
        (fixed.unwrap(), 50),
    ];
    for (policy, left) in policies {
        let attempt = |_: &u32| CallContext::current().attempt_deadline();
        let peer = Script::<u32, (), _>::noting(attempt, [Step::answer(())]);
        DeadlineLayer::new(policy)
            .layer(peer.clone())
            .oneshot(1)
            .await
            .unwrap();
        let expected = Deadline::after(clock::now(), millis(left));
        assert_eq!(peer.requests(), [Some(expected)]);
    }
}

#[tokio::test(start_paused = true)]
async fn the_longest_durations_do_not_overflow() {
    let policy = DeadlinePolicy::within(Duration::MAX).unwrap();
    let policy = policy.reserve(Reserve::fixed(Duration::MAX));
    assert!(policy.is_err(), "nothing would be left of it");
    let slow = Script::<u32, u32>::new([Step::answer(7).after(Duration::from_secs(86_400))]);
    assert_eq!(
        within(Duration::MAX).layer(slow).oneshot(1).await.unwrap(),
        7
    );
    let peer = peer();
    let service = DeadlineLayer::http(DeadlinePolicy::none()).layer(peer.clone());
    let carried = request(&[("x-request-timeout-ms", "9999999999999999999")]);
    service.oneshot(carried).await.unwrap();
    assert_eq!(peer.requests()[0].0, Some(clock::FAR_FUTURE));
}

#[tokio::test(start_paused = true)]
async fn a_malformed_header_is_passed_over_reported_and_not_sent_on() {
    let (peer, heard) = (peer(), Heard::default());
    let layer = DeadlineLayer::http(DeadlinePolicy::within(millis(300)).unwrap());
    let service = layer.observer(heard.observer()).layer(peer.clone());
    service
        .oneshot(request(&[("grpc-timeout", "-1S")]))
        .await
        .unwrap();
    assert_eq!(peer.requests(), [(Some(millis(300)), HeaderMap::new())]);
    assert_eq!(heard.all(), ["malformed grpc-timeout"]);
}

fn blocking() -> impl Service<u32, Response = u32, Error = BoxError, Future: Send> + Clone {
    tower::service_fn(|question: u32| async move {
        std::thread::sleep(millis(40));
        Ok(question)
    })
}

/// Real time: a poll that blocks stops the paused one too.
#[tokio::test]
async fn an_answer_that_a_blocking_poll_made_late_is_given_and_reported() {
    let heard = Heard::default();
    let layer = within(millis(10)).observer(heard.observer());
    assert_eq!(layer.layer(blocking()).oneshot(7).await.unwrap(), 7);
    assert_eq!(heard.all(), ["late"]);
}

/// Real time. tokio's own timers are not asked once a task has used up its budget.
#[tokio::test]
async fn a_call_that_uses_up_its_tasks_budget_at_every_poll_is_cut_all_the_same() {
    let busy = tower::service_fn(|_: u32| async {
        let start = clock::now();
        while start.elapsed() < Duration::from_secs(2) {
            tokio::task::coop::consume_budget().await;
        }
        Ok::<_, Infallible>(())
    });
    let cut = within(millis(20)).layer(busy).oneshot(1).await;
    assert!(rejection(&cut.unwrap_err()).is_deadline_exceeded());
}

/// Row J11, C20: at build time, by name.
#[test]
fn limits_that_make_no_sense_are_refused_by_name() {
    let zero = DeadlinePolicy::within(Duration::ZERO).unwrap_err();
    assert_eq!((zero.setting(), zero.value()), ("deadline", "0s"));
    let policy = DeadlinePolicy::within(millis(100)).unwrap();
    let all = policy.reserve(Reserve::fixed(millis(100))).unwrap_err();
    assert_eq!((all.setting(), all.value()), ("reserve", "100ms"));
    assert_eq!(
        DeadlinePolicy::default().limit(),
        Some(Duration::from_secs(10))
    );
    assert_eq!(DeadlinePolicy::none().limit(), None);
}

fn with_status(status: &str) -> Response<ScriptedBody> {
    let mut answer = Response::new(ScriptedBody::empty());
    let status = status.parse().unwrap();
    answer.headers_mut().insert("grpc-status", status);
    answer
}

/// `ST-03`, `ST-04`: tonic's own timer says `CANCELLED` when the deadline that we told it has passed.
#[tokio::test(start_paused = true)]
async fn a_cancelled_answer_after_the_deadline_says_that_it_has_passed() {
    let grpc = |limit| {
        let policy = DeadlinePolicy::within(millis(limit)).unwrap();
        DeadlineLayer::with_wire(policy, HttpWire::grpc())
    };
    let cases = [("1", 100, true), ("1", 101, false), ("5", 100, false)];
    for (status, limit, cut) in cases {
        let step = Step::answer(with_status(status)).after(millis(100));
        let peer: Script<Request<()>, Response<ScriptedBody>> = Script::new([step]);
        let result = grpc(limit).layer(peer).oneshot(request(&[])).await;
        let reason = result.err().map(|error| rejection(&error).reason());
        let expected = cut.then_some(Reason::DeadlineExceeded);
        assert_eq!(reason, expected, "status {status} within {limit} ms");
    }
}

/// `ST-02`, `ST-03`: or it resets the stream.
#[tokio::test(start_paused = true)]
async fn a_stream_that_is_reset_by_cancel_after_the_deadline_says_that_it_has_passed() {
    let reset =
        |code| TransportError::new(Kind::Reset, Resend::IfIdempotent, "reset").with_code(code);
    let cases = [
        (Code::Cancelled, 100, true),
        (Code::Cancelled, 101, false),
        (Code::Internal, 100, false),
    ];
    for (code, limit, cut) in cases {
        let step = Step::error(reset(code)).after(millis(100));
        let peer: Script<u32, u32> = Script::new([step]);
        let error = within(millis(limit))
            .layer(peer)
            .oneshot(1)
            .await
            .unwrap_err();
        let reason = Rejection::of(&*error).map(Rejection::reason);
        let expected = cut.then_some(Reason::DeadlineExceeded);
        assert_eq!(reason, expected, "{code} within {limit} ms");
    }
}
