//! An attempt's limit as its caller sees it: scripted services, paused time.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use http::{HeaderMap, Request, Response};
use http_body_util::BodyExt;
use mamparo_core::http::Http;
use mamparo_core::{
    Backoff, BoxError, CallContext, Classify, Deadline, Dependency, Event, Jitter, Kind, LayerKind,
    Observer, Outcome, Reason, Rejection, Resend, Settle, Verdict, What, clock,
};
use mamparo_testkit::body::{Frames, ScriptedBody};
use mamparo_testkit::service::{NeverReady, ReadyAfter, Script, Step};
use proptest::prelude::*;
use tower::{Layer, Service, ServiceExt};

use super::state::{By, limit};
use super::*;
use crate::deadline::{DeadlineLayer, DeadlinePolicy};
use crate::replay::ReplayBody;
use crate::retry::{RetryLayer, RetryPolicy};
use crate::wire::{HttpWire, NoWire};

const HEADER: &str = "x-request-timeout-ms";

const fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

fn policy(timeout: u64) -> AttemptPolicy {
    let builder = AttemptPolicy::builder().timeout(millis(timeout));
    builder.build().unwrap()
}

fn within(timeout: u64) -> AttemptTimeoutLayer<NoWire> {
    AttemptTimeoutLayer::new(policy(timeout)).dependency("catalog")
}

fn over_http(timeout: u64) -> AttemptTimeoutLayer<HttpWire> {
    AttemptTimeoutLayer::http(policy(timeout)).dependency("catalog")
}

fn answer(status: u16) -> Response<ScriptedBody> {
    let body = ScriptedBody::new("ok");
    Response::builder().status(status).body(body).unwrap()
}

/// An operation with so long to go, and so much kept back.
fn operation(limit: Duration, reserve: Duration) -> CallContext {
    CallContext::join(LayerKind::Deadline, Dependency::UNNAMED)
        .with_deadline(Deadline::after(clock::now(), limit))
        .with_reserve(reserve)
}

async fn inside<T>(mut context: CallContext, call: impl Future<Output = T>) -> T {
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
        let What::Rejected(rejection) = event.what else {
            panic!("{:?}", event.what)
        };
        let text = format!("attempt {}: {rejection}", event.context.attempt());
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

/// Rows C13, D8 and D9: which of the two was reached decides whether another attempt may follow.
#[tokio::test(start_paused = true)]
async fn the_smaller_of_timeout_and_what_remains_cuts_an_attempt_and_says_which() {
    let cases = [
        (500, None, Reason::AttemptTimedOut, 500),
        (500, Some((2_000, 50)), Reason::AttemptTimedOut, 500),
        (500, Some((550, 50)), Reason::AttemptTimedOut, 500),
        (500, Some((400, 50)), Reason::DeadlineExceeded, 350),
    ];
    for (timeout, deadline, reason, after) in cases {
        let peer = Script::<u32, u32>::new([Step::hang()]);
        let call = within(timeout).layer(peer.clone()).oneshot(1);
        let start = clock::now();
        let error = match deadline {
            Some((limit, reserve)) => inside(operation(millis(limit), millis(reserve)), call).await,
            None => call.await,
        }
        .unwrap_err();
        assert_eq!(
            (rejection(&error).reason(), clock::now() - start),
            (reason, millis(after))
        );
        assert!(rejection(&error).sent() && peer.dropped() == 1);
        let limit = format!("no answer within {after}ms");
        assert!(error.to_string().ends_with(&limit), "{error}");
    }
}

proptest! {
    #[test]
    fn a_limit_is_never_longer_than_either_and_nothing_is_sent_exactly_when_nothing_remains(
        timeout in prop::option::of(1u64..5_000),
        remaining in prop::option::of(0u64..5_000),
    ) {
        let (timeout, remaining) = (timeout.map(millis), remaining.map(millis));
        let now = clock::now();
        let (by, found) = limit(now, timeout, remaining.map(|left| Deadline::after(now, left)));
        prop_assert_eq!(by == By::Spent, remaining == Some(Duration::ZERO));
        prop_assert_eq!(by == By::Nothing, timeout.is_none() && remaining.is_none());
        if let Some(cut) = found.cut() {
            let duration = found.timeout();
            prop_assert_eq!(cut, Deadline::after(now, duration));
            prop_assert!(timeout.is_none_or(|timeout| duration <= timeout));
            prop_assert!(remaining.is_none_or(|remaining| duration <= remaining));
            prop_assert!(Some(duration) == timeout || Some(duration) == remaining);
        }
    }
}

/// Row P-A3, GE-07: not even with a zero in the header.
#[tokio::test(start_paused = true)]
async fn an_attempt_for_which_nothing_remains_is_not_sent() {
    let (peer, heard) = (
        Script::<Request<()>, _>::new([Step::answer(answer(200))]),
        Heard::default(),
    );
    let service = over_http(500)
        .observer(heard.observer())
        .layer(peer.clone());
    let spent = operation(millis(50), millis(50));
    let error = inside(spent, service.oneshot(Request::new(())))
        .await
        .unwrap_err();
    assert!(rejection(&error).is_deadline_exceeded() && !rejection(&error).sent());
    assert_eq!(peer.started(), 0);
    assert_eq!(
        heard.all(),
        ["attempt 1: catalog: deadline exceeded: not sent"]
    );
}

/// Row P-A3: rounded down, but never to what a peer could take for "no limit".
#[tokio::test(start_paused = true)]
async fn less_than_a_millisecond_is_told_as_one() {
    let peer = noting([answer(200)]);
    let call = over_http(500).layer(peer.clone()).oneshot(Request::new(()));
    inside(operation(Duration::from_micros(300), Duration::ZERO), call)
        .await
        .unwrap();
    assert_eq!(peer.requests()[0][HEADER], "1");
}

fn noting<Req: Send + 'static>(
    answers: impl IntoIterator<Item = Response<ScriptedBody>>,
) -> Script<Request<Req>, Response<ScriptedBody>, HeaderMap> {
    let steps: Vec<_> = answers.into_iter().map(Step::answer).collect();
    Script::noting(|request: &Request<Req>| request.headers().clone(), steps)
}

/// Rows P-A1 and P-A2, DL-04: deadline, retry and attempt together, and a value that the caller set by hand.
#[tokio::test(start_paused = true)]
async fn each_attempt_tells_what_then_remains_and_never_a_stale_or_larger_value() {
    type Wire = Request<ReplayBody<ScriptedBody>>;
    let note = |request: &Wire| request.headers().clone();
    let peer = Script::noting(
        note,
        [
            Step::answer(answer(503)).after(millis(300)),
            Step::answer(answer(200)),
        ],
    );
    let backoff = Backoff::builder()
        .base(millis(200))
        .jitter(Jitter::None)
        .build()
        .unwrap();
    let stack = (
        DeadlineLayer::http(DeadlinePolicy::within(millis(2_000)).unwrap()),
        RetryLayer::http(RetryPolicy::builder().backoff(backoff).build().unwrap()),
        over_http(1_000),
    );
    let request = Request::get("http://catalog/").header(HEADER, "9000");
    let call = stack
        .layer(peer.clone())
        .oneshot(request.body(ScriptedBody::empty()).unwrap());
    call.await.unwrap();
    let told: Vec<_> = peer
        .requests()
        .iter()
        .map(|headers| headers[HEADER].clone())
        .collect();
    assert_eq!(
        told,
        ["1950", "1450"],
        "2 s less 50 ms of reserve, then 500 ms later"
    );
}

/// Row P-A1: a handler that has 500 ms calls out after 200 ms, with no layer for the deadline of its own.
#[tokio::test(start_paused = true)]
async fn what_a_handler_has_left_is_told_to_whom_it_calls() {
    let peer = noting([answer(200)]);
    let service = over_http(2_000).layer(peer.clone());
    let call = async {
        tokio::time::sleep(millis(200)).await;
        let request = Request::get("/")
            .header("grpc-timeout", "9S")
            .body(())
            .unwrap();
        service.oneshot(request).await
    };
    inside(operation(millis(500), Duration::ZERO), call)
        .await
        .unwrap();
    let headers = peer.requests().remove(0);
    assert_eq!(
        (headers.len(), &headers[HEADER]),
        (1, &"300".parse().unwrap())
    );
}

/// Row P-A10: a place in the inner service's queue is waited for on the attempt's time.
#[tokio::test(start_paused = true)]
async fn the_wait_for_readiness_counts_and_an_attempt_cut_in_it_was_not_sent() {
    let start = clock::now();
    let error = within(500)
        .layer(NeverReady::<u32>::new())
        .oneshot(1)
        .await
        .unwrap_err();
    assert_eq!(clock::now() - start, millis(500));
    assert!(rejection(&error).is_attempt_timeout() && !rejection(&error).sent());

    let slow = Script::<u32, u32>::new([Step::answer(1).after(millis(200))]);
    let start = clock::now();
    let error = within(500)
        .layer(ReadyAfter::time(slow, millis(400)))
        .oneshot(1)
        .await
        .unwrap_err();
    assert_eq!(clock::now() - start, millis(500));
    assert!(rejection(&error).is_attempt_timeout() && rejection(&error).sent());
}

#[tokio::test(start_paused = true)]
async fn an_attempt_without_any_limit_takes_as_long_as_it_takes() {
    let none = AttemptPolicy::builder()
        .no_timeout()
        .no_body_idle()
        .build()
        .unwrap();
    let inner = Script::<u32, u32, _>::noting(
        |_| CallContext::current().attempt_cut(),
        [Step::answer(7).after(Duration::from_secs(86_400))],
    );
    let answer = AttemptTimeoutLayer::new(none)
        .layer(inner.clone())
        .oneshot(1)
        .await;
    assert_eq!((answer.unwrap(), inner.requests()), (7, vec![None]));
    let endless = Script::<u32, u32>::new([Step::answer(7).after(Duration::from_secs(86_400))]);
    let longest = AttemptPolicy::builder()
        .timeout(Duration::MAX)
        .build()
        .unwrap();
    assert_eq!(
        AttemptTimeoutLayer::new(longest)
            .layer(endless)
            .oneshot(1)
            .await
            .unwrap(),
        7
    );
}

/// Law 6: what is dropped at or after that instant was cut by us.
#[tokio::test(start_paused = true)]
async fn what_is_called_sees_when_it_is_cut() {
    let inner = Script::<u32, u32, _>::noting(|_| CallContext::current(), [Step::answer(1)]);
    let call = within(500).layer(inner.clone()).oneshot(1);
    inside(operation(millis(400), millis(50)), call)
        .await
        .unwrap();
    let seen = inner.requests().remove(0);
    assert_eq!(
        seen.attempt_cut(),
        Some(Deadline::after(clock::now(), millis(350)))
    );
    assert_eq!(seen.attempt_timeout(), millis(350));
    assert_eq!(CallContext::current().attempt_cut(), None);
}

/// Row D3.
#[tokio::test(start_paused = true)]
async fn an_attempt_that_its_caller_cancels_is_not_reported() {
    let heard = Heard::default();
    let peer = Script::<u32, u32>::new([Step::hang()]);
    let call = within(500)
        .observer(heard.observer())
        .layer(peer.clone())
        .oneshot(1);
    assert!(tokio::time::timeout(millis(499), call).await.is_err());
    assert_eq!((peer.dropped(), heard.all()), (1, Vec::new()));
}

/// Row D6: without a runtime, so that whoever makes a timer panics.
#[test]
fn an_instant_answer_leaves_no_timer_behind() {
    let mut cx = Context::from_waker(Waker::noop());
    let peer = noting([answer(200), answer(503)]);
    let mut service = over_http(500).layer(peer);
    for _ in 0..2 {
        assert!(service.poll_ready(&mut cx).is_ready());
        let mut call = std::pin::pin!(service.call(Request::new(())));
        assert!(matches!(call.as_mut().poll(&mut cx), Poll::Ready(Ok(_))));
    }
}

/// Row D5: the timeout ends with the head.
#[tokio::test(start_paused = true)]
async fn a_body_may_take_longer_than_the_attempts_timeout() {
    let frames = (0..5).fold(Frames::new(), |frames, _| {
        frames.wait(millis(400)).data("x")
    });
    let peer = noting([Response::new(ScriptedBody::new(frames))]);
    let answer = over_http(500)
        .layer(peer)
        .oneshot(Request::new(()))
        .await
        .unwrap();
    assert_eq!(
        answer.into_body().collect().await.unwrap().to_bytes(),
        "xxxxx"
    );
}

#[tokio::test(start_paused = true)]
async fn a_body_may_take_until_the_deadline_less_the_reserve() {
    let body = ScriptedBody::new(Frames::new().data("half").hang());
    let (watch, peer) = (body.watch(), noting([Response::new(body)]));
    let context = operation(millis(2_000), millis(50));
    let start = clock::now();
    let call = over_http(500).layer(peer).oneshot(Request::new(()));
    let error = inside(context, call)
        .await
        .unwrap()
        .into_body()
        .collect()
        .await
        .unwrap_err();
    assert_eq!(clock::now() - start, millis(1_950));
    assert_eq!(rejection(&error).reason(), Reason::DeadlineExceeded);
    assert_eq!(watch.dropped_at(), Some(clock::now()));
}

#[tokio::test(start_paused = true)]
async fn a_body_that_stalls_is_cut_and_reported_with_its_attempt_and_its_dependency() {
    let policy = AttemptPolicy::builder()
        .body_idle(millis(300))
        .build()
        .unwrap();
    let heard = Heard::default();
    let peer = noting([Response::new(ScriptedBody::new(
        Frames::new().data("half").hang(),
    ))]);
    let layer = AttemptTimeoutLayer::http(policy)
        .dependency("catalog")
        .observer(heard.observer());
    let second = CallContext::join(LayerKind::Retry, Dependency::UNNAMED).with_attempt(
        2,
        3,
        mamparo_core::Cause::Retry,
    );
    let answer = inside(second, layer.layer(peer).oneshot(Request::new(())))
        .await
        .unwrap();
    let error = answer.into_body().collect().await.unwrap_err();
    assert_eq!(rejection(&error).reason(), Reason::BodyIdle);
    let says = "attempt 2: catalog: response body stalled: no frame within 300ms";
    assert_eq!(heard.all(), [says]);
}

#[derive(Clone, Debug, Default)]
struct Told(Arc<Mutex<Vec<Verdict>>>);

impl Settle for Told {
    fn settle(&mut self, verdict: Verdict) {
        self.0.lock().unwrap().push(verdict);
    }
}

/// Laws 6 and 9: a span or a breaker further in sees its body dropped, and must not take that for a caller who has read
/// enough.
#[tokio::test(start_paused = true)]
async fn a_body_that_is_cut_is_a_failure_for_whoever_watches_it_from_inside() {
    let stalls = AttemptPolicy::builder().body_idle(millis(300)).build();
    let late = AttemptPolicy::builder().no_body_idle().build();
    for policy in [stalls.unwrap(), late.unwrap()] {
        let told = Told::default();
        let watched = tower::service_fn(|_: Request<()>| {
            let guard = told.clone();
            async move {
                let body = ScriptedBody::new(Frames::new().data("half").hang());
                let (http, response) = (Http::default(), Response::new(body));
                let head = http.head(Ok(&response));
                Ok::<_, std::convert::Infallible>(http.tie(response, head, guard))
            }
        });
        let call = AttemptTimeoutLayer::http(policy).layer(watched);
        let context = operation(millis(2_000), millis(50));
        let answer = inside(context, call.oneshot(Request::new(()))).await;
        assert!(answer.unwrap().into_body().collect().await.is_err());
        let timeout = Verdict::failure(Kind::Timeout, Resend::Never);
        assert_eq!(*told.0.lock().unwrap(), [timeout], "{policy:?}");
    }
}

/// Real time. tokio's own timers are not asked once a task has used up its budget.
#[tokio::test]
async fn an_attempt_that_uses_up_its_tasks_budget_at_every_poll_is_cut_all_the_same() {
    let busy = tower::service_fn(|_: u32| async {
        let start = clock::now();
        while start.elapsed() < Duration::from_secs(2) {
            tokio::task::coop::consume_budget().await;
        }
        Ok::<_, std::convert::Infallible>(())
    });
    let cut = within(20).layer(busy).oneshot(1).await;
    assert!(rejection(&cut.unwrap_err()).is_attempt_timeout());
}

/// Rows J11 and C20: at build time, by name; and the defaults.
#[test]
fn limits_of_nothing_are_refused_by_name() {
    let timeout = AttemptPolicy::builder()
        .timeout(Duration::ZERO)
        .build()
        .unwrap_err();
    assert_eq!(
        (timeout.setting(), timeout.value()),
        ("attempt_timeout", "0s")
    );
    let idle = AttemptPolicy::builder()
        .body_idle(Duration::ZERO)
        .build()
        .unwrap_err();
    assert_eq!((idle.setting(), idle.value()), ("body_idle", "0s"));
    assert_eq!(
        AttemptPolicy::builder().build().unwrap(),
        AttemptPolicy::default()
    );
}

/// `ST-03`: what remains less the reserve is what the peer was told, and when it may call the attempt cancelled.
#[tokio::test(start_paused = true)]
async fn a_cancelled_answer_when_the_attempts_time_is_up_says_that_the_deadline_has_passed() {
    let grpc = || AttemptTimeoutLayer::with_wire(policy(500), HttpWire::grpc());
    for (after, cut) in [(350, true), (349, false)] {
        let mut cancelled = answer(200);
        let status = "1".parse().unwrap();
        cancelled.headers_mut().insert("grpc-status", status);
        let step = Step::answer(cancelled).after(millis(after));
        let peer: Script<Request<()>, Response<ScriptedBody>> = Script::new([step]);
        let call = grpc().layer(peer).oneshot(Request::new(()));
        let result = inside(operation(millis(400), millis(50)), call).await;
        let reason = result.err().map(|error| rejection(&error).reason());
        assert_eq!(
            reason,
            cut.then_some(Reason::DeadlineExceeded),
            "{after} ms"
        );
    }
}
