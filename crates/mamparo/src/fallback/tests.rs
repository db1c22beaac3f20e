//! A fallback as its caller sees it: scripted services, paused time.

use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use mamparo_core::{
    BoxError, CallContext, Classify, Deadline, Event, Kind, Observer, Plain, Reason, Rejection,
    Resend, TransportError, Verdict, What, clock,
};
use mamparo_testkit::body::{Frames, ScriptedBody};
use mamparo_testkit::service::{Script, Step, Strict};
use tower::{Layer, Service, ServiceExt, service_fn};

use super::*;
use crate::replay::ReplayBody;

const MS: Duration = Duration::from_millis(1);

type Answer = Response<ScriptedBody>;
type Peer = Script<Request<ScriptedBody>, Answer, ()>;

fn peer(steps: impl IntoIterator<Item = Step<Answer>>) -> Peer {
    Script::noting(|_| (), steps)
}

fn status(status: u16) -> Step<Answer> {
    let body = ScriptedBody::new(format!("body of {status}"));
    Step::answer(Response::builder().status(status).body(body).unwrap())
}

fn get() -> Request<ScriptedBody> {
    Request::new(ScriptedBody::empty())
}

fn instead() -> Response<Full<Bytes>> {
    Response::new(Full::from("instead"))
}

async fn text<B>(answer: Response<B>) -> Bytes
where
    B: http_body::Body<Data = Bytes, Error: std::fmt::Debug>,
{
    answer.into_body().collect().await.unwrap().to_bytes()
}

#[derive(Clone, Debug, Default)]
struct Heard(Arc<Mutex<Vec<String>>>);

impl Observer for Heard {
    fn on(&self, event: &Event<'_>) {
        if let What::FellBack { verdict, ended, .. } = event.what {
            let text = format!("{}: {}", verdict.as_str(), ended.as_str());
            self.0.lock().unwrap().push(text);
        }
    }
}

impl Heard {
    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

async fn within<T>(limit: Duration, call: impl Future<Output = T>) -> T {
    let deadline = Deadline::after(clock::now(), limit);
    let mut context = CallContext::current().with_deadline(deadline);
    let mut call = pin!(call);
    std::future::poll_fn(|cx| context.enter(|| call.as_mut().poll(cx))).await
}

#[tokio::test(start_paused = true)]
async fn an_unavailable_dependency_is_stood_in_for_and_the_answer_says_so() {
    let heard = Heard::default();
    let header = HeaderName::from_static("x-partial");
    let policy = FallbackPolicy::builder().header(header, HeaderValue::from_static("true"));
    let layer = FallbackLayer::http(policy.build().unwrap(), value(instead()));
    let layer = layer.observer(Arc::new(heard.clone()));
    let answer = layer
        .layer(peer([status(503)]))
        .oneshot(get())
        .await
        .unwrap();
    assert_eq!(answer.headers()["x-partial"], "true");
    let failed = FellBack::of(&answer).unwrap().failed();
    assert_eq!(
        (failed.kind(), failed.reason()),
        (Some(Kind::Unavailable), None)
    );
    assert_eq!(heard.all(), ["unavailable: served"]);
    assert_eq!(text(answer).await, "instead");
}

/// Row H3: it may be dear.
#[tokio::test(start_paused = true)]
async fn nothing_is_asked_while_the_dependency_answers() {
    let other = Script::<u32, u32>::new([]);
    let layer = FallbackLayer::new(
        FallbackPolicy::default(),
        Plain::idempotent(),
        service(other.clone()),
    );
    let peer = Script::<u32, u32>::new([Step::answer(7)]);
    assert_eq!(layer.layer(peer).oneshot(1).await.unwrap(), 7);
    assert_eq!(other.started(), 0);
}

/// Row H1: what is permanent reaches the caller as it is.
#[tokio::test(start_paused = true)]
async fn a_request_at_fault_gets_its_own_answer() {
    for code in [400, 401, 404, 429, 500, 501] {
        let layer = FallbackLayer::http(FallbackPolicy::default(), value(instead()));
        let answer = layer
            .layer(peer([status(code)]))
            .oneshot(get())
            .await
            .unwrap();
        assert_eq!(answer.status().as_u16(), code);
        assert!(answer.extensions().is_empty());
        assert_eq!(text(answer).await, format!("body of {code}"));
    }
}

/// Row H1.
#[tokio::test(start_paused = true)]
async fn our_own_rejections_are_stood_in_for_and_tell_why() {
    let refused = Rejection::refused(Reason::DeadlineExceeded, "catalog".into());
    let told = Arc::new(Mutex::new(None));
    let tell = Arc::clone(&told);
    let layer = FallbackLayer::new(
        FallbackPolicy::default(),
        Plain::idempotent(),
        from_fn(move |failed: Failed| {
            *tell.lock().unwrap() = Some(failed);
            Ok::<_, BoxError>(7)
        }),
    );
    let peer = Script::<u32, u32>::new([Step::error(refused)]);
    assert_eq!(layer.layer(peer).oneshot(1).await.unwrap(), 7);
    let failed = told.lock().unwrap().unwrap();
    assert_eq!(
        (failed.kind(), failed.reason()),
        (None, Some(Reason::DeadlineExceeded))
    );
}

/// Law 6: whoever went away wants nothing instead.
#[tokio::test(start_paused = true)]
async fn a_caller_that_goes_away_causes_no_fallback() {
    let other = Script::<u32, u32>::new([]);
    let layer = FallbackLayer::new(
        FallbackPolicy::default(),
        Plain::idempotent(),
        service(other.clone()),
    );
    let peer = Script::<u32, u32>::new([Step::hang()]);
    let call = layer.layer(peer.clone()).oneshot(1);
    assert!(tokio::time::timeout(10 * MS, call).await.is_err());
    assert_eq!((other.started(), peer.running()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn an_async_closure_is_waited_for() {
    let layer = FallbackLayer::http(
        FallbackPolicy::default(),
        from_async_fn(async |_: Failed| {
            tokio::time::sleep(50 * MS).await;
            Ok::<_, BoxError>(instead())
        }),
    );
    let start = clock::now();
    let answer = layer
        .layer(peer([status(503)]))
        .oneshot(get())
        .await
        .unwrap();
    assert_eq!(
        (answer.status(), start.elapsed()),
        (StatusCode::OK, 50 * MS)
    );
}

/// The other service gets the same request, body and all, on an instance that was polled ready.
#[tokio::test(start_paused = true)]
async fn another_service_answers_the_same_request() {
    type Wire = Request<ReplayBody<ScriptedBody>>;
    let other = service_fn(async |request: Wire| {
        let (head, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        Ok::<_, BoxError>(Response::new(Full::from(format!("{} {body:?}", head.uri))))
    });
    let primary = service_fn(async |request: Wire| {
        // Half of the body is read before it fails.
        request.into_body().frame().await;
        Err::<Answer, _>(TransportError::new(
            Kind::Connect,
            Resend::Always,
            "refused",
        ))
    });
    let layer = FallbackLayer::http(FallbackPolicy::default(), service(Strict::new(other)));
    let body = ScriptedBody::new(Frames::new().data("he").data("re"));
    let request = Request::put("/items").body(body).unwrap();
    let answer = layer.layer(primary).oneshot(request).await.unwrap();
    assert_eq!(text(answer).await, "/items b\"here\"");
}

#[tokio::test(start_paused = true)]
async fn a_request_too_large_to_keep_gets_its_own_answer() {
    let heard = Heard::default();
    let other =
        service_fn(async |_: Request<ReplayBody<ScriptedBody>>| Ok::<_, BoxError>(instead()));
    let policy = FallbackPolicy::builder().max_body(3).build().unwrap();
    let layer = FallbackLayer::http(policy, service(other)).observer(Arc::new(heard.clone()));
    let primary = service_fn(async |_| {
        let down = Response::builder().status(503).body(ScriptedBody::empty());
        Ok::<_, BoxError>(down.unwrap())
    });
    let request = Request::new(ScriptedBody::new("four"));
    let answer = layer.layer(primary).oneshot(request).await.unwrap();
    assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(heard.all(), ["unavailable: no_request"]);
}

/// Law 8: the dependency's own answer comes back, and tells of both.
#[tokio::test(start_paused = true)]
async fn when_both_fail_the_dependencys_own_response_is_returned() {
    let heard = Heard::default();
    let broken = from_fn(|_| Err::<Response<Full<Bytes>>, _>("the cache is cold"));
    let layer = FallbackLayer::http(FallbackPolicy::default(), broken);
    let layer = layer.observer(Arc::new(heard.clone()));
    let answer = layer
        .layer(peer([status(503)]))
        .oneshot(get())
        .await
        .unwrap();
    assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(FellBack::of(&answer).is_none());
    let failed = FallbackFailed::of(&answer).unwrap();
    assert_eq!(failed.error().to_string(), "the cache is cold");
    assert_eq!(heard.all(), ["unavailable: failed"]);
    assert_eq!(text(answer).await, "body of 503");
}

#[tokio::test(start_paused = true)]
async fn when_both_fail_with_errors_the_error_carries_both() {
    let broken = from_fn(|_| Err::<Response<Full<Bytes>>, _>("the cache is cold"));
    let layer = FallbackLayer::http(FallbackPolicy::default(), broken).dependency("catalog");
    let refused = Rejection::refused(Reason::AttemptTimedOut, "catalog".into());
    let call = layer.layer(peer([Step::error(refused)])).oneshot(get());
    let error = call.await.unwrap_err();
    assert!(Rejection::of(&*error).unwrap().is_attempt_timeout());
    let both = error.downcast_ref::<FallbackError>().unwrap();
    assert_eq!(both.fallback().to_string(), "the cache is cold");
    assert_eq!(
        error.to_string(),
        "catalog: failed, and so did its fallback: the cache is cold"
    );
}

/// Row H4: at most so many at once, from the question to the end of the answer's body; the others get their own failure.
#[tokio::test(start_paused = true)]
async fn no_more_fallbacks_run_at_once_than_are_allowed() {
    let heard = Heard::default();
    let policy = FallbackPolicy::builder().max_concurrent(2).build().unwrap();
    let slow = from_async_fn(async |_: Failed| {
        tokio::time::sleep(50 * MS).await;
        Ok::<_, BoxError>(instead())
    });
    let layer = FallbackLayer::http(policy, slow).observer(Arc::new(heard.clone()));
    let down = peer([]).otherwise(|| status(503));
    let call = || layer.layer(down.clone()).oneshot(get());
    let calls: Vec<_> = (0..200).map(|_| tokio::spawn(call())).collect();
    let mut served = Vec::new();
    for call in calls {
        let answer = call.await.unwrap().unwrap();
        served.extend(answer.status().is_success().then_some(answer));
    }
    assert_eq!(served.len(), 2);
    assert_eq!(
        heard
            .all()
            .iter()
            .filter(|told| *told == "unavailable: full")
            .count(),
        198
    );

    let refused = call().await.unwrap();
    assert!(
        FellBack::of(&refused).is_none(),
        "the bodies are not read yet"
    );
    let read = served.pop().unwrap();
    assert_eq!(text(read).await, "instead");
    assert!(
        FellBack::of(&call().await.unwrap()).is_some(),
        "one was read"
    );
    drop(served);
    let cancelled = call();
    assert!(tokio::time::timeout(10 * MS, cancelled).await.is_err());
    assert!(
        FellBack::of(&call().await.unwrap()).is_some(),
        "a cancelled one gives its place back"
    );
}

/// The deadline holds for the fallback too.
#[tokio::test(start_paused = true)]
async fn after_the_deadline_nothing_is_asked_and_before_it_the_fallback_sees_what_remains() {
    let heard = Heard::default();
    let remains = from_fn(|_| {
        let remaining = CallContext::current().attempt_remaining(clock::now());
        Ok::<_, BoxError>(remaining.unwrap())
    });
    let policy = FallbackPolicy::builder().on([Kind::Other]).build().unwrap();
    let layer = FallbackLayer::new(policy, Plain::idempotent(), remains);
    let layer = layer.observer(Arc::new(heard.clone()));
    let failing = |after| Script::<u32, Duration>::new([Step::error("down").after(after)]);
    let early = layer.layer(failing(30 * MS)).oneshot(1);
    assert_eq!(within(100 * MS, early).await.unwrap(), 70 * MS);
    let late = layer.layer(failing(100 * MS)).oneshot(1);
    assert_eq!(
        within(100 * MS, late).await.unwrap_err().to_string(),
        "down"
    );
    assert_eq!(heard.all(), ["other: served", "other: too_late"]);
}

#[tokio::test(start_paused = true)]
async fn a_protocol_whose_verdicts_are_refined_falls_back_by_them() {
    let protocol = Classify::<u32>::refine(
        Plain::idempotent(),
        |outcome: Result<&u32, &BoxError>, verdict: Verdict| match outcome {
            Ok(0) => Verdict::failure(Kind::Unavailable, Resend::Never),
            _ => verdict,
        },
    );
    let layer = FallbackLayer::new(FallbackPolicy::default(), protocol, value(7));
    let peer = Script::<u32, u32>::new([Step::answer(0), Step::answer(1)]);
    let mut service = layer.layer(peer);
    assert_eq!(service.ready().await.unwrap().call(1).await.unwrap(), 7);
    assert_eq!(service.ready().await.unwrap().call(1).await.unwrap(), 1);
}

/// Nothing of the dependency's call is held through the fallback.
#[tokio::test(start_paused = true)]
async fn the_dependencys_slot_is_free_before_the_fallback_is_waited_for() {
    let refused = || TransportError::new(Kind::Connect, Resend::Always, "refused");
    let strict = Strict::with_slots(Script::<u32, u32>::new([Step::error(refused())]), 1);
    let layer = FallbackLayer::new(
        FallbackPolicy::default(),
        Plain::idempotent(),
        from_async_fn(async |_: Failed| std::future::pending::<Result<u32, BoxError>>().await),
    );
    let mut service = layer.layer(strict.clone());
    let mut call = pin!(service.ready().await.unwrap().call(1));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(call.as_mut().poll(&mut cx).is_pending());
    let mut another = strict;
    let ready = Service::<u32>::poll_ready(&mut another, &mut cx);
    assert!(matches!(ready, Poll::Ready(Ok(()))));
}

#[test]
fn a_setting_that_makes_no_sense_is_named() {
    let refused = |policy: FallbackBuilder| policy.build().unwrap_err().setting();
    let builder = FallbackPolicy::builder;
    assert_eq!(refused(builder().on([Kind::Client])), "on");
    assert_eq!(refused(builder().on([]).rejections(false)), "on");
    assert_eq!(refused(builder().max_concurrent(0)), "max_concurrent");
}
