//! HTTP's place for a deadline, and bodies that are bounded, in paused time.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, SystemTime};

use ::http::{HeaderName, HeaderValue, Request, Response};
use bytes::Bytes;
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use mamparo_core::clock::{self, WallClock};
use mamparo_core::{
    BoxError, CallContext, Deadline, Dependency, Event, LayerKind, Observer, OperationId, Reason,
    Rejection, What,
};
use mamparo_testkit::body::{Frames, ScriptedBody};

use super::codec::{DeadlineHeader, DeadlineHeaders, Remaining};
use super::*;

const MS: HeaderName = HeaderName::from_static("x-request-timeout-ms");

const fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

fn request(headers: &[(&'static str, &str)]) -> Request<()> {
    let mut request = Request::new(());
    for (name, value) in headers {
        request.headers_mut().append(*name, value.parse().unwrap());
    }
    request
}

#[derive(Debug)]
struct At(u64);

impl WallClock for At {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + millis(self.0)
    }
}

/// A clock that nobody needs.
#[derive(Debug)]
struct Unread;

impl WallClock for Unread {
    fn now(&self) -> SystemTime {
        panic!("no header here is a time of day")
    }
}

#[test]
fn http_reads_the_smallest_of_the_default_headers() {
    let wire = HttpWire::default().wall_clock(Unread);
    let cases: [(&[_], Option<u64>); 5] = [
        (&[], None),
        (&[("x-request-timeout-ms", "700")], Some(700)),
        (&[("grpc-timeout", "1S")], Some(1_000)),
        (
            &[("grpc-timeout", "1S"), ("x-request-timeout-ms", "700")],
            Some(700),
        ),
        (
            &[
                ("x-request-timeout-ms", "700"),
                ("x-request-timeout-ms", "300"),
            ],
            Some(300),
        ),
    ];
    for (headers, expected) in cases {
        let read = wire.read(&request(headers));
        let expected = expected.map(|count| Remaining::For(millis(count)));
        assert_eq!(read.remaining(), expected, "{headers:?}");
    }
}

#[test]
fn http_takes_every_deadline_off_and_nothing_else() {
    let wire = HttpWire::default().sends(DeadlineHeader::connect_timeout_ms());
    let mut request = request(&[
        ("x-request-timeout-ms", "1"),
        ("x-request-timeout-ms", "2"),
        ("grpc-timeout", "1S"),
        ("connect-timeout-ms", "9"),
        ("accept", "*/*"),
    ]);
    wire.strip(&mut request);
    assert_eq!(request.headers().keys().collect::<Vec<_>>(), ["accept"]);
}

/// Row P-A1, DL-01: what was carried is replaced, whatever it said, in whichever form.
#[test]
fn http_writes_what_remains_in_place_of_what_was_carried() {
    let wire = HttpWire::default().wall_clock(Unread);
    let mut request = request(&[("x-request-timeout-ms", "9000"), ("grpc-timeout", "1H")]);
    wire.write(&mut request, Duration::from_micros(299_999));
    assert_eq!(request.headers().len(), 1);
    assert_eq!(request.headers()[MS], "299");
}

/// Row P-A1: what a caller set by hand never leaves, in gRPC's form neither.
#[test]
fn grpc_sends_what_remains_in_its_own_header_only() {
    let wire = HttpWire::grpc().wall_clock(Unread);
    for carried in ["30S", "100m", "1H", "nonsense"] {
        let mut request = request(&[("grpc-timeout", carried), ("te", "trailers")]);
        wire.write(&mut request, millis(150));
        assert_eq!(request.headers().len(), 2, "{carried}");
        assert_eq!(request.headers()["grpc-timeout"], "150000u", "{carried}");
    }
    let read = wire.read(&request(&[("x-request-timeout-ms", "700")]));
    assert!(read.is_empty(), "no header of HTTP's");
}

#[test]
fn http_reads_and_writes_times_of_day_by_the_clock_that_it_is_given() {
    let until = || DeadlineHeader::epoch_millis("x-until").unwrap();
    let wire = HttpWire::default()
        .accepts(until())
        .sends(until())
        .wall_clock(At(10_000));
    let mut request = request(&[("x-until", "10250")]);
    let read = wire.read(&request);
    assert_eq!(read.remaining(), Some(Remaining::For(millis(250))));
    wire.write(&mut request, millis(200));
    assert_eq!(request.headers()["x-until"], "10200");
}

#[test]
fn http_can_send_several_headers_or_none() {
    let both = [
        DeadlineHeader::request_timeout_ms(),
        DeadlineHeader::grpc_timeout(),
    ];
    let mut sent = request(&[]);
    let wire = HttpWire::default().sends(DeadlineHeaders::new(both).unwrap());
    wire.write(&mut sent, millis(150));
    assert_eq!(sent.headers()[MS], "150");
    assert_eq!(sent.headers()["grpc-timeout"], "150000u");
    let none = HttpWire::default().sends(DeadlineHeaders::new([]).unwrap());
    let mut sent = request(&[("grpc-timeout", "1H")]);
    none.write(&mut sent, millis(50));
    assert!(sent.headers().is_empty());
}

#[test]
fn a_request_with_as_many_headers_as_there_can_be_goes_without_a_deadline() {
    let mut request = request(&[("x-request-timeout-ms", "9000")]);
    let value = HeaderValue::from_static("1");
    for count in 0.. {
        let name = HeaderName::try_from(format!("x-{count}")).unwrap();
        if request
            .headers_mut()
            .try_insert(name, value.clone())
            .is_err()
        {
            break;
        }
    }
    HttpWire::default()
        .sends(DeadlineHeader::grpc_timeout())
        .write(&mut request, millis(50));
    assert!(!request.headers().contains_key(MS), "nor with a stale one");
}

#[test]
fn a_service_of_any_kind_has_no_place_for_a_deadline() {
    let mut request = 7;
    NoWire.write(&mut request, millis(1));
    NoWire.strip(&mut request);
    assert_eq!((NoWire.read(&request).remaining(), request), (None, 7));
    assert_eq!(NoWire.bound(8, BodyLimits::default), 8);
}

#[test]
fn http_bounds_the_body_and_leaves_the_head() {
    let mut answer = Response::new(ScriptedBody::new("ok"));
    answer.headers_mut().insert("a", "1".parse().unwrap());
    let bounded = HttpWire::default().bound(answer, BodyLimits::default);
    assert_eq!(
        (bounded.status().as_u16(), &bounded.headers()["a"]),
        (200, &"1".parse().unwrap())
    );
    assert_eq!(bounded.body().size_hint().exact(), Some(2));
}

fn limits(deadline: Option<u64>, idle: Option<u64>) -> BodyLimits {
    let deadline = deadline.map(|count| Deadline::after(clock::now(), millis(count)));
    BodyLimits::default()
        .until(deadline)
        .idle(idle.map(millis))
        .dependency("catalog".into())
}

fn body(frames: Frames, limits: BodyLimits) -> TimedBody<ScriptedBody> {
    TimedBody::new(ScriptedBody::new(frames), || limits)
}

async fn text<B>(body: &mut TimedBody<B>) -> Option<Result<Bytes, Rejection>>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    let frame = body.frame().await?;
    Some(match frame {
        Ok(frame) => Ok(frame.into_data().unwrap()),
        Err(error) => Err(Rejection::of(&*error).expect("a rejection").clone()),
    })
}

#[tokio::test(start_paused = true)]
async fn a_body_that_stalls_is_cut_after_the_idle_time() {
    let frames = Frames::new()
        .data("a")
        .wait(millis(90))
        .data("b")
        .wait(millis(101))
        .data("c");
    let mut body = body(frames, limits(None, Some(100)));
    let start = clock::now();
    assert_eq!(text(&mut body).await.unwrap().unwrap(), "a");
    assert_eq!(text(&mut body).await.unwrap().unwrap(), "b");
    let rejection = text(&mut body).await.unwrap().unwrap_err();
    assert_eq!(clock::now() - start, millis(190));
    assert_eq!(
        (rejection.reason(), rejection.sent()),
        (Reason::BodyIdle, true)
    );
    let says = "catalog: response body stalled: no frame within 100ms";
    assert_eq!(rejection.to_string(), says);
    assert!(body.is_end_stream() && body.size_hint().exact() == Some(0));
    assert!(text(&mut body).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_consumer_that_takes_its_time_does_not_make_a_body_idle() {
    let mut read = body(
        Frames::new().data("a").data("b").data("c"),
        limits(None, Some(100)),
    );
    for expected in ["a", "b", "c"] {
        tokio::time::sleep(millis(500)).await;
        assert_eq!(text(&mut read).await.unwrap().unwrap(), expected);
    }
    let mut waited = body(
        Frames::new().wait(millis(50)).data("a"),
        limits(None, Some(100)),
    );
    let pending = tokio::time::timeout(millis(10), text(&mut waited)).await;
    assert!(pending.is_err());
    tokio::time::sleep(millis(500)).await;
    assert_eq!(
        text(&mut waited).await.unwrap().unwrap(),
        "a",
        "it was there in time"
    );
}

#[tokio::test(start_paused = true)]
async fn the_earlier_of_two_limits_cuts_a_body() {
    let cases = [
        (Some(300), Some(200), Reason::BodyIdle, 200),
        (Some(100), Some(200), Reason::DeadlineExceeded, 100),
        (Some(100), None, Reason::DeadlineExceeded, 100),
    ];
    for (deadline, idle, reason, after) in cases {
        let start = clock::now();
        let mut body = body(Frames::new().hang(), limits(deadline, idle));
        let rejection = text(&mut body).await.unwrap().unwrap_err();
        assert_eq!(
            (rejection.reason(), clock::now() - start),
            (reason, millis(after))
        );
    }
}

/// Many short waits, each within the idle time: the one timer follows.
#[tokio::test(start_paused = true)]
async fn a_body_that_goes_on_is_cut_only_at_its_deadline() {
    let frames = (0..50).fold(Frames::new(), |frames, _| frames.wait(millis(30)).data("x"));
    let start = clock::now();
    let mut body = body(frames, limits(Some(1_000), Some(40)));
    let mut frames = 0;
    let rejection = loop {
        match text(&mut body).await.unwrap() {
            Ok(_) => frames += 1,
            Err(rejection) => break rejection,
        }
    };
    assert_eq!((frames, clock::now() - start), (33, millis(1_000)));
    assert_eq!(rejection.reason(), Reason::DeadlineExceeded);
}

/// Row P-A7: nobody ever waits for it, so that no timer would end it.
#[tokio::test(start_paused = true)]
async fn a_body_that_always_has_a_frame_ready_ends_at_its_deadline_too() {
    let frames = (0..9).fold(Frames::new(), |frames, _| frames.data("x"));
    let mut body = body(frames, limits(Some(100), None));
    for _ in 0..2 {
        assert!(text(&mut body).await.unwrap().is_ok());
        tokio::time::sleep(millis(40)).await;
    }
    assert!(text(&mut body).await.unwrap().is_ok());
    tokio::time::sleep(millis(40)).await;
    let rejection = text(&mut body).await.unwrap().unwrap_err();
    assert_eq!(rejection.reason(), Reason::DeadlineExceeded);
    assert!(text(&mut body).await.is_none());
}

/// Law 8: a whole answer that is there is not replaced by an error of ours.
#[tokio::test(start_paused = true)]
async fn the_last_frame_is_given_although_the_deadline_has_passed() {
    let mut whole = body("whole".into(), limits(Some(100), None));
    let mut ended = body(Frames::new().trailer("sum", "7"), limits(Some(100), None));
    tokio::time::sleep(millis(200)).await;
    assert_eq!(text(&mut whole).await.unwrap().unwrap(), "whole");
    assert!(whole.is_end_stream());
    assert!(ended.frame().await.unwrap().unwrap().is_trailers());
}

/// `ST-03`: the peer's timer was a little earlier than ours, and tonic's calls that cancelled.
#[tokio::test(start_paused = true)]
async fn trailers_that_say_cancelled_after_the_deadline_say_that_it_has_passed() {
    let cases = [
        ("1", 100, Some(Reason::DeadlineExceeded)),
        ("1", 101, None),
        ("0", 100, None),
        ("14", 100, None),
    ];
    for (status, deadline, expected) in cases {
        let frames = Frames::new()
            .data("a")
            .wait(millis(100))
            .trailer("grpc-status", status);
        let mut body = body(frames, limits(Some(deadline), None));
        assert!(text(&mut body).await.unwrap().is_ok());
        let end = body.frame().await.unwrap();
        let reason = end
            .err()
            .map(|error| Rejection::of(&*error).unwrap().reason());
        assert_eq!(reason, expected, "status {status}, deadline {deadline}");
    }
}

/// `ST-02`, `ST-03`: a peer that obeys our deadline may reset the stream at it.
#[tokio::test(start_paused = true)]
async fn a_stream_that_breaks_after_the_deadline_says_that_it_has_passed() {
    for (deadline, cut) in [(100, true), (101, false)] {
        let frames = Frames::new().data("a").wait(millis(100)).error("reset");
        let mut body = body(frames, limits(Some(deadline), None));
        assert!(text(&mut body).await.unwrap().is_ok());
        let error = body.frame().await.unwrap().unwrap_err();
        assert_eq!(Rejection::of(&*error).is_some(), cut, "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_bodys_own_error_is_passed_on() {
    let frames = Frames::new().data("half").error("connection reset");
    let mut body = body(frames, limits(Some(1_000), Some(1_000)));
    assert_eq!(text(&mut body).await.unwrap().unwrap(), "half");
    assert_eq!(
        body.frame().await.unwrap().unwrap_err().to_string(),
        "connection reset"
    );
}

/// Without a runtime, so that whoever makes a timer panics.
#[test]
fn a_body_that_need_not_be_waited_for_makes_no_timer() {
    let mut ready = body(
        Frames::new().data("a").data("b"),
        limits(Some(1_000), Some(1_000)),
    );
    let mut unbounded = body(Frames::new().hang(), BodyLimits::default());
    let mut cx = Context::from_waker(Waker::noop());
    let mut poll = |body: &mut TimedBody<ScriptedBody>| {
        let mut frame = std::pin::pin!(body.frame());
        frame.as_mut().poll(&mut cx)
    };
    for _ in 0..2 {
        assert!(matches!(poll(&mut ready), Poll::Ready(Some(Ok(_)))));
    }
    assert!(matches!(poll(&mut ready), Poll::Ready(None)));
    assert!(poll(&mut unbounded).is_pending());
}

#[derive(Clone, Debug, Default)]
struct Heard(Arc<Mutex<Vec<(Dependency, String)>>>);

impl Observer for Heard {
    fn on(&self, event: &Event<'_>) {
        let What::Rejected(rejection) = event.what else {
            panic!("{:?}", event.what)
        };
        let heard = (event.context.dependency(), rejection.to_string());
        self.0.lock().unwrap().push(heard);
    }
}

/// Notes in which operation it is polled.
#[derive(Default)]
struct Hangs(Arc<Mutex<Vec<Option<OperationId>>>>);

impl Body for Hangs {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        self.0
            .lock()
            .unwrap()
            .push(CallContext::current().operation());
        Poll::Pending
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_is_polled_and_its_cut_reported_in_the_context_that_it_is_given() {
    let context = CallContext::join(LayerKind::Deadline, "catalog".into());
    let hangs = Hangs::default();
    let seen = Arc::clone(&hangs.0);
    let heard = Heard::default();
    let limits = limits(Some(100), None)
        .within(mamparo_core::Scope::of(context))
        .observer(Some(Arc::new(heard.clone())));
    let mut body = TimedBody::new(hangs, || limits);
    assert!(body.frame().await.unwrap().is_err());
    let seen = seen.lock().unwrap();
    assert!(!seen.is_empty() && seen.iter().all(|id| *id == context.operation()));
    let text = "catalog: deadline exceeded".to_owned();
    assert_eq!(*heard.0.lock().unwrap(), [("catalog".into(), text)]);
    assert!(CallContext::current().operation().is_none());
}
