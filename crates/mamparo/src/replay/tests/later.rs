//! Bodies that attempts read one after the other.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use ::http::{HeaderMap, Method, Request};
use bytes::{Buf, Bytes};
use http_body::{Body, Frame};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use mamparo_core::http::Http as Protocol;
use mamparo_core::{BoxError, NotResent, Plain, Resend};
use mamparo_testkit::body::{Frames, ScriptedBody};
use proptest::prelude::*;

use crate::replay::*;

pub(super) const CAP: usize = 8;

pub(super) type Attempt<B> = Request<ReplayBody<B>>;

pub(super) fn split<B>(body: B) -> (ReplayBody<B>, Option<HttpHeld<B>>)
where
    B: Body + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    let (wire, held) = Protocol::default().split(Request::new(body), Some(CAP));
    (wire.into_body(), held)
}

/// The body of the next attempt; yet another can follow.
pub(super) fn again<B>(held: &mut Option<HttpHeld<B>>) -> Result<ReplayBody<B>, NotResent>
where
    B: Body + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    let (wire, next): (Attempt<B>, _) = Protocol::default().again(held.take().unwrap(), true)?;
    *held = next;
    Ok(wire.into_body())
}

/// What one poll says, in short.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Said {
    Pending,
    Data(Bytes),
    Trailers(HeaderMap),
    Error(String),
    End,
}

pub(super) fn data(bytes: &'static str) -> Said {
    Said::Data(Bytes::from(bytes))
}

pub(super) fn trailers() -> Said {
    Said::Trailers(
        [("sum".parse().unwrap(), "7".parse().unwrap())]
            .into_iter()
            .collect(),
    )
}

pub(super) fn said(frame: Option<Result<Frame<Bytes>, BoxError>>) -> Said {
    match frame {
        None => Said::End,
        Some(Err(error)) => Said::Error(error.to_string()),
        Some(Ok(frame)) => match frame.into_data() {
            Ok(data) => Said::Data(data),
            Err(frame) => Said::Trailers(frame.into_trailers().unwrap()),
        },
    }
}

pub(super) fn poll_with<B>(body: &mut ReplayBody<B>, waker: &Waker) -> Said
where
    B: Body + Unpin,
    B::Error: Into<BoxError>,
{
    match Pin::new(body).poll_frame(&mut Context::from_waker(waker)) {
        Poll::Pending => Said::Pending,
        Poll::Ready(frame) => said(frame),
    }
}

pub(super) fn poll<B>(body: &mut ReplayBody<B>) -> Said
where
    B: Body + Unpin,
    B::Error: Into<BoxError>,
{
    poll_with(body, Waker::noop())
}

/// Reads to the end without a wait.
pub(super) fn rest<B>(body: &mut ReplayBody<B>) -> Vec<Said>
where
    B: Body + Unpin,
    B::Error: Into<BoxError>,
{
    let mut all = Vec::new();
    loop {
        match poll(body) {
            Said::End => return all,
            Said::Pending => panic!("nothing here waits"),
            said => all.push(said),
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Woken {
    pub(super) fn times(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// Row P-B1.
#[tokio::test(start_paused = true)]
async fn an_attempt_that_read_nothing_leaves_the_whole_body_to_the_next() {
    let frames = Frames::new()
        .wait(Duration::from_millis(50))
        .data("slow")
        .data("ly");
    let (first, mut held) = split(ScriptedBody::new(frames));
    drop(first);
    let second = again(&mut held).unwrap();
    assert_eq!(second.collect().await.unwrap().to_bytes(), "slowly");
}

/// Row P-B2.
#[test]
fn a_later_attempt_reads_the_same_frames_and_trailers_from_the_first_on() {
    let frames = Frames::new()
        .data("ab")
        .data("")
        .data("c")
        .data("def")
        .trailer("sum", "7");
    let (mut first, mut held) = split(ScriptedBody::new(frames));
    assert_eq!([poll(&mut first), poll(&mut first)], [data("ab"), data("")]);
    let whole = [data("ab"), data(""), data("c"), data("def"), trailers()];
    for _ in 0..3 {
        let mut next = again(&mut held).unwrap();
        assert_eq!(rest(&mut next), whole);
        assert_eq!(poll(&mut next), Said::End, "the end stays the end");
    }
}

/// Row P-B2: a resend may begin while the upload is unfinished.
#[tokio::test(start_paused = true)]
async fn a_later_attempt_reads_on_where_the_recording_ends() {
    let frames = Frames::new()
        .data("here")
        .wait(Duration::from_secs(1))
        .data("late");
    let (mut first, mut held) = split(ScriptedBody::new(frames));
    assert_eq!(
        [poll(&mut first), poll(&mut first)],
        [data("here"), Said::Pending]
    );
    let mut second = again(&mut held).unwrap();
    assert_eq!(
        [poll(&mut second), poll(&mut second)],
        [data("here"), Said::Pending]
    );
    assert_eq!(said(second.frame().await), data("late"));
    assert!(second.is_end_stream());
}

#[tokio::test(start_paused = true)]
async fn a_reader_whose_attempt_is_over_is_woken_and_fails() {
    let (mut first, mut held) = split(ScriptedBody::new(Frames::new().data("a").hang()));
    let woken = Arc::<Woken>::default();
    let waker = Waker::from(Arc::clone(&woken));
    assert_eq!(poll_with(&mut first, &waker), data("a"));
    assert_eq!(poll_with(&mut first, &waker), Said::Pending);
    let second = again(&mut held).unwrap();
    assert_eq!(woken.times(), 1);
    let failed = first.frame().await.unwrap().unwrap_err();
    assert!(failed.is::<Superseded>(), "{failed}");
    drop((first, second));
}

/// hyper ends a request where its body says so: the half that was sent must not pass for a whole.
#[test]
fn a_reader_whose_attempt_is_over_does_not_take_the_later_ones_end_for_its_own() {
    let over_the_cap = Frames::new().data("four").data("four").data("!").data("");
    let failing = Frames::new().data("four").data("four").error("reset");
    for frames in [over_the_cap, failing] {
        let (mut first, mut held) = split(ScriptedBody::new(frames).without_hints());
        assert_eq!(poll(&mut first), data("four"));
        let mut second = again(&mut held).unwrap();
        while !matches!(poll(&mut second), Said::End) {}
        assert!(second.is_end_stream() && !first.is_end_stream());
        assert!(matches!(poll(&mut first), Said::Error(_)));
    }
}

/// Row P-B4: exactly the bound is kept, of a known and of an unknown length.
#[test]
fn a_body_of_exactly_the_bound_is_sent_again() {
    let body = || ScriptedBody::new(Frames::new().data("1234").data("5678"));
    for body in [body(), body().without_hints()] {
        let (mut first, mut held) = split(body);
        assert_eq!(rest(&mut first), [data("1234"), data("5678")]);
        assert_eq!(
            rest(&mut again(&mut held).unwrap()),
            [data("1234"), data("5678")]
        );
    }
}

/// Row P-B4: sent once, and not failed.
#[test]
fn a_body_known_to_be_longer_than_the_bound_is_streamed_and_nothing_of_it_is_held() {
    let body = ScriptedBody::new(Frames::new().data("12345678").data("9").trailer("sum", "7"));
    let (mut first, held) = split(body);
    assert!(held.is_none());
    assert_eq!(first.size_hint().exact(), Some(9));
    assert_eq!(poll(&mut first), data("12345678"));
    assert_eq!(
        (first.size_hint().exact(), first.is_end_stream()),
        (Some(1), false)
    );
    assert_eq!(rest(&mut first), [data("9"), trailers()]);
    assert!(first.is_end_stream());
}

/// Row P-B4: the attempt under way is not disturbed, the memory is released, and the reason is told.
#[test]
fn a_body_that_turns_out_longer_than_the_bound_is_sent_once() {
    struct Counted {
        text: &'static str,
        _alive: Arc<()>,
    }
    impl AsRef<[u8]> for Counted {
        fn as_ref(&self) -> &[u8] {
            self.text.as_bytes()
        }
    }
    let alive = Arc::new(());
    let counted = |text| {
        let _alive = Arc::clone(&alive);
        Bytes::from_owner(Counted { text, _alive })
    };
    let frames = Frames::new()
        .data(counted("1234"))
        .data(counted("5678"))
        .data(counted("9"))
        .data(counted("0"));
    let (mut first, mut held) = split(ScriptedBody::new(frames).without_hints());
    assert_eq!(poll(&mut first), data("1234"));
    assert_eq!(poll(&mut first), data("5678"));
    assert_eq!(Arc::strong_count(&alive), 5, "recorded");
    assert_eq!(poll(&mut first), data("9"));
    assert_eq!(
        Arc::strong_count(&alive),
        2,
        "only what the source has left to give"
    );
    assert_eq!(rest(&mut first), [data("0")]);
    assert_eq!(again(&mut held).unwrap_err(), NotResent::BodyTooLarge);
}

#[test]
fn frames_without_data_do_not_fill_the_memory() {
    let empty = (0..=CAP).fold(Frames::new(), |frames, _| frames.data(""));
    let (mut first, mut held) = split(ScriptedBody::new(empty).without_hints());
    assert_eq!(rest(&mut first).len(), CAP + 1);
    assert_eq!(again(&mut held).unwrap_err(), NotResent::BodyTooLarge);
}

#[test]
fn a_body_that_breaks_fails_its_attempt_and_is_not_sent_again() {
    let frames = Frames::new().data("half").error("the file is gone");
    let (mut first, mut held) = split(ScriptedBody::new(frames));
    assert_eq!(poll(&mut first), data("half"));
    assert_eq!(poll(&mut first), Said::Error("the file is gone".into()));
    assert_eq!((poll(&mut first), first.is_end_stream()), (Said::End, true));
    assert_eq!(again(&mut held).unwrap_err(), NotResent::BodyUnavailable);
}

#[test]
fn an_empty_body_is_empty_on_every_attempt() {
    let (first, mut held) = split(ScriptedBody::empty());
    let second = again(&mut held).unwrap();
    for body in [first, second] {
        assert_eq!(
            (body.size_hint().exact(), body.is_end_stream()),
            (Some(0), true)
        );
    }
}

#[test]
fn a_body_is_held_by_nobody_after_the_last_attempt() {
    let body = ScriptedBody::new("once more");
    let watch = body.watch();
    let (first, held) = Protocol::default().split(Request::new(body), Some(64));
    let (last, none) = Protocol::default().again(held.unwrap(), false).unwrap();
    assert!(none.is_none());
    drop((first, last));
    assert!(watch.is_dropped());
}

#[test]
fn nothing_is_recorded_when_no_resend_can_follow() {
    let (wire, held) = Protocol::default().split(Request::new(ScriptedBody::new("a")), None);
    assert!(held.is_none());
    assert_eq!(format!("{:?}", wire.body()), "ReplayBody::Once");
}

#[test]
fn data_of_any_kind_is_recorded_as_bytes() {
    let body = ScriptedBody::new(Frames::new().data("ab").data("c"))
        .map_frame(|frame| frame.map_data(|data| data.chain(Bytes::from("!"))));
    let (mut first, mut held) = split(body);
    assert_eq!(rest(&mut first), [data("ab!"), data("c!")]);
    assert_eq!(
        rest(&mut again(&mut held).unwrap()),
        [data("ab!"), data("c!")]
    );
}

#[test]
fn a_body_that_is_not_sync_can_be_sent_by_a_client_that_wants_it_so() {
    fn wanted<B: Body + Send + Sync + 'static>(_: &B) {}
    let unsync = || UnsyncBoxBody::new(Full::new(Bytes::from("ab")));
    let (recorded, _) = split(unsync());
    wanted(&recorded);
    wanted(&ReplayBody::once(unsync()));
}

#[test]
fn the_head_is_the_same_on_every_attempt_but_for_its_number() {
    let http = Protocol::default();
    let request = Request::post("http://catalog/items")
        .header("a", "1")
        .body(ScriptedBody::new("b"));
    let (first, held) = http.split(request.unwrap(), Some(CAP));
    let (mut second, _) = http.again(held.unwrap(), true).unwrap();
    assert_eq!(
        (second.method(), second.uri()),
        (first.method(), first.uri())
    );
    assert_eq!(second.headers(), first.headers());
    Replay::<Request<ScriptedBody>>::number(&http, &mut second, 2);
    assert_eq!(second.headers()[ATTEMPT_HEADER], "2");
}

#[test]
fn a_method_or_a_key_makes_a_request_safe_to_send_again() {
    let safety = |method, header: Option<&'static str>| {
        let mut request = Request::builder().method::<Method>(method);
        if let Some(name) = header {
            request = request.header(name, "1");
        }
        Protocol::default().safety(&request.body(ScriptedBody::empty()).unwrap())
    };
    assert!(safety(Method::PUT, None).allows(Resend::IfIdempotent));
    assert!(!safety(Method::PUT, None).allows(Resend::IfKeyed));
    assert!(!safety(Method::POST, None).allows(Resend::IfIdempotent));
    assert!(safety(Method::POST, Some("idempotency-key")).allows(Resend::IfKeyed));
    assert!(!safety(Method::GET, Some("early-data")).allows(Resend::UnlessEarlyData));
}

/// IK-06, IK-07: no server can tell two requests with it from others.
#[test]
fn an_empty_key_makes_nothing_safe() {
    for empty in ["", " ", "\"\""] {
        let request = Request::post("/").header("idempotency-key", empty);
        let request = request.body(ScriptedBody::empty()).unwrap();
        let safety = Protocol::default().safety(&request);
        assert!(!safety.is_idempotent(), "{empty:?}");
    }
}

#[test]
fn a_plain_request_is_copied_only_for_a_resend() {
    let plain = Plain::idempotent();
    assert_eq!(plain.split(7, None), (7, None));
    assert_eq!(plain.split(7, Some(0)), (7, Some(7)));
    assert_eq!(plain.again(7, true), Ok((7, Some(7))));
    assert_eq!(plain.again(7, false), Ok((7, None)));
}

/// A body of these frames, in each of which stand so many bytes; then its trailers.
pub(super) fn scripted(lengths: &[usize], with_trailers: bool) -> (ScriptedBody, Vec<Said>) {
    let bytes = |(at, length): (usize, &usize)| Bytes::from(vec![at as u8; *length]);
    let all: Vec<_> = lengths.iter().enumerate().map(bytes).collect();
    let frames = all.iter().cloned().fold(Frames::new(), Frames::data);
    let mut said: Vec<_> = all.into_iter().map(Said::Data).collect();
    if !with_trailers {
        return (ScriptedBody::new(frames), said);
    }
    said.push(trailers());
    (ScriptedBody::new(frames.trailer("sum", "7")), said)
}

proptest! {
    /// Rows P-B1, P-B2 and C14: whatever the attempts before have read, the next one sees the original; and what
    /// it says of its size and its end is true at every step.
    #[test]
    fn every_attempt_sees_exactly_the_original(
        lengths in prop::collection::vec(0usize..20, 0..8),
        with_trailers in any::<bool>(),
        reads in prop::collection::vec(0usize..12, 1..4),
    ) {
        let (body, original) = scripted(&lengths, with_trailers);
        let (first, held) = Protocol::default().split(Request::new(body), Some(1000));
        let mut attempt = first.into_body();
        let mut held = held;
        for frames in reads {
            for said in original.iter().take(frames) {
                prop_assert_eq!(&poll(&mut attempt), said);
            }
            attempt = again(&mut held).unwrap();
        }
        let mut left: usize = lengths.iter().sum();
        for said in &original {
            prop_assert_eq!(attempt.size_hint().exact(), Some(left as u64));
            prop_assert!(!attempt.is_end_stream());
            prop_assert_eq!(&poll(&mut attempt), said);
            if let Said::Data(data) = said {
                left -= data.len();
            }
        }
        prop_assert!(attempt.is_end_stream());
        prop_assert_eq!(poll(&mut attempt), Said::End);
    }
}
