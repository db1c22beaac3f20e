//! A peek as its caller sees it: scripted answers, paused time.

use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http_body::Body;
use http_body_util::BodyExt;
use mamparo_core::grpc::Code;
use mamparo_core::{NotResent, clock};
use mamparo_testkit::body::Frames;
use mamparo_testkit::service::Step;
use tower::{Layer, ServiceExt};

use super::*;
use crate::grpc::tests::cast::*;
use crate::hedge::{HedgeLayer, HedgePolicy};
use crate::retry::{Ending, RetryLayer, RetryPolicy};

type Peeked = http::Response<PeekedBody<mamparo_testkit::body::ScriptedBody>>;

async fn send(peek: PeekLayer, peer: &Peer, policy: RetryPolicy) -> Peeked {
    let service = RetryLayer::grpc(policy).layer(peek.layer(peer.clone()));
    service.oneshot(request()).await.unwrap()
}

/// No data, and trailers with that status and whatever else.
fn failing_late(code: Code, more: &[(&'static str, &str)]) -> Frames {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", u16::from(code.number()).into());
    trailers.insert("grpc-message", http::HeaderValue::from_static("late"));
    for (name, value) in more {
        trailers.insert(*name, value.parse().unwrap());
    }
    Frames::new().trailers(trailers)
}

fn late(code: Code) -> Step<Answer> {
    Step::answer(streamed(failing_late(code, &[])))
}

/// What a body yields, frame by frame.
#[derive(Debug, PartialEq)]
enum Seen {
    Data(Bytes),
    Trailers(HeaderMap),
    Error(String),
}

async fn frames(body: impl Body<Data = Bytes, Error: Into<mamparo_core::BoxError>>) -> Vec<Seen> {
    let mut body = std::pin::pin!(body);
    let mut seen = Vec::new();
    while let Some(frame) = body.as_mut().frame().await {
        seen.push(match frame.map(http_body::Frame::into_data) {
            Ok(Ok(data)) => Seen::Data(data),
            Ok(Err(frame)) => Seen::Trailers(frame.into_trailers().unwrap()),
            Err(error) => Seen::Error(error.into().to_string()),
        });
        if let Some(Seen::Error(_)) = seen.last() {
            break;
        }
    }
    seen
}

/// P-B7: headers, then trailers that say a failure, and no data between.
#[tokio::test(start_paused = true)]
async fn a_failure_in_trailers_after_an_empty_body_is_sent_again() {
    let peer = peer([late(Code::Unavailable), Step::answer(ok())]);
    let answer = send(PeekLayer::new(), &peer, RetryPolicy::default()).await;
    assert_eq!(Ending::of(&answer).unwrap().attempts(), 2);
    assert_eq!(
        answer.into_body().collect().await.unwrap().to_bytes(),
        "answer"
    );
    let off = self::peer([late(Code::Unavailable)]);
    send(PeekLayer::off(), &off, RetryPolicy::default()).await;
    assert_eq!(off.started(), 1, "off by default: a head commits the call");
}

/// P-B7: data was delivered.
#[tokio::test(start_paused = true)]
async fn a_failure_after_data_is_the_callers() {
    let failing = Frames::new().data("half").trailer("grpc-status", "14");
    let peer = peer([Step::answer(streamed(failing))]);
    let answer = send(PeekLayer::new(), &peer, RetryPolicy::default()).await;
    assert_eq!((peer.started(), Ending::of(&answer)), (1, None));
    let whole = answer.into_body().collect().await.unwrap();
    assert_eq!(whole.trailers().unwrap()["grpc-status"], "14");
    assert_eq!(whole.to_bytes(), "half");
}

/// PB-03: a pushback in such trailers counts as one in a head.
#[tokio::test(start_paused = true)]
async fn a_pushback_in_such_trailers_is_obeyed() {
    let frames = failing_late(Code::Unavailable, &[("grpc-retry-pushback-ms", "700")]);
    let back = peer([Step::answer(streamed(frames)), Step::answer(ok())]);
    send(PeekLayer::new(), &back, RetryPolicy::default()).await;
    assert_eq!(sends(&back), [0, 700]);
    let frames = failing_late(Code::Unavailable, &[("grpc-retry-pushback-ms", "-1")]);
    let stop = peer([Step::answer(streamed(frames))]);
    let answer = send(PeekLayer::new(), &stop, RetryPolicy::default()).await;
    assert_eq!(
        Ending::of(&answer).unwrap().not_resent(),
        Some(NotResent::Forbidden)
    );
}

/// P-B7: a stream's head is not late where nothing could follow from it.
#[tokio::test(start_paused = true)]
async fn a_head_is_not_held_back_where_no_attempt_is_left() {
    let slow = || {
        Frames::new()
            .wait(Duration::from_secs(1))
            .data("first")
            .trailer("grpc-status", "0")
    };
    let once = RetryPolicy::builder().max_attempts(1).build().unwrap();
    let start = clock::now();
    let only = peer([Step::answer(streamed(slow()))]);
    send(PeekLayer::new(), &only, once).await;
    assert_eq!(clock::now(), start, "sent once");

    let twice = RetryPolicy::builder().max_attempts(2).build().unwrap();
    let again = Step::answer(pushed_back(Code::Unavailable, &["0"]));
    let last = peer([again, Step::answer(streamed(slow()))]);
    send(PeekLayer::new(), &last, twice).await;
    assert_eq!(clock::now(), start, "the last attempt");

    let alone = PeekLayer::new().layer(peer([Step::answer(streamed(slow()))]));
    let wire = http::Request::new(crate::replay::ReplayBody::empty());
    alone.oneshot(wire).await.unwrap();
    assert_eq!(clock::now(), start, "nobody resends");
}

/// P-B4: what is too large to be sent again is not waited for either.
#[tokio::test(start_paused = true)]
async fn a_head_is_not_held_back_where_the_request_is_not_kept() {
    let policy = RetryPolicy::builder().max_body(2).build().unwrap();
    let slow = Frames::new().wait(Duration::from_secs(1)).data("first");
    let peer = peer([Step::answer(streamed(slow))]);
    let start = clock::now();
    send(PeekLayer::new(), &peer, policy).await;
    assert_eq!(clock::now(), start);
}

/// Law 10.
#[tokio::test(start_paused = true)]
async fn a_head_is_held_back_for_so_long_and_no_longer() {
    let hanging = || peer([Step::answer(streamed(Frames::new().hang()))]);
    for (layer, longest) in [
        (PeekLayer::new(), 2_000),
        (PeekLayer::new().longest(30 * MS), 30),
        (PeekLayer::new().longest(Duration::ZERO), 0),
    ] {
        let start = clock::now();
        send(layer, &hanging(), RetryPolicy::default()).await;
        assert_eq!((clock::now() - start).as_millis(), longest);
    }
    // What comes later is the caller's, and whole.
    let later = Frames::new()
        .wait(100 * MS)
        .data("late")
        .trailer("grpc-status", "14");
    let peer = peer([Step::answer(streamed(later))]);
    let patience = PeekLayer::new().longest(30 * MS);
    let answer = send(patience, &peer, RetryPolicy::default()).await;
    let whole = answer.into_body().collect().await.unwrap();
    assert_eq!(whole.trailers().unwrap()["grpc-status"], "14");
    assert_eq!(whole.to_bytes(), "late");
}

/// P-B6: for every way that a peek can go, the second frame pending among them.
#[tokio::test(start_paused = true)]
async fn a_bodys_frames_are_the_same_with_a_peek_and_without() {
    let paths: [fn() -> Frames; 10] = [
        || Frames::new(),
        || Frames::new().data("one").trailer("grpc-status", "0"),
        || {
            Frames::new()
                .data("one")
                .wait(10 * MS)
                .data("two")
                .trailer("grpc-status", "0")
        },
        || {
            Frames::new()
                .wait(10 * MS)
                .data("one")
                .trailer("grpc-status", "13")
        },
        || failing_late(Code::Ok, &[("x-more", "1")]),
        || Frames::new().wait(10 * MS).trailer("grpc-status", "0"),
        || failing_late(Code::Internal, &[("x-more", "1")]),
        || Frames::new().wait(10 * MS).trailer("grpc-status", "13"),
        || Frames::new().error("broken"),
        || Frames::new().data("one").error("broken"),
    ];
    for (at, path) in paths.into_iter().enumerate() {
        let mut seen = Vec::new();
        for layer in [PeekLayer::off(), PeekLayer::new()] {
            let peer = peer([Step::answer(streamed(path()))]);
            let answer = send(layer, &peer, RetryPolicy::default()).await;
            assert_eq!(peer.started(), 1);
            let (hint, ended) = (answer.body().size_hint(), answer.body().is_end_stream());
            let body = frames(answer.into_body()).await;
            let bytes: usize = body
                .iter()
                .map(|frame| match frame {
                    Seen::Data(data) => data.len(),
                    _ => 0,
                })
                .sum();
            assert!(hint.lower() <= bytes as u64 || matches!(body.last(), Some(Seen::Error(_))));
            assert!(hint.upper().is_none_or(|upper| upper >= bytes as u64));
            assert!(!ended || body.is_empty());
            seen.push(body);
        }
        assert_eq!(seen[0], seen[1], "path {at}");
    }
}

/// What else judges heads sees it as well, and the caller gets it with all that the trailers said.
#[tokio::test(start_paused = true)]
async fn a_failure_that_is_not_sent_again_is_shown_in_the_head() {
    let frames = failing_late(Code::Internal, &[("x-why", "bug")]);
    let peer = peer([Step::answer(streamed(frames))]);
    let answer = send(PeekLayer::new(), &peer, RetryPolicy::default()).await;
    let head = answer.headers();
    assert_eq!(
        (&head["grpc-status"], &head["grpc-message"]),
        (&"13".parse().unwrap(), &"late".parse().unwrap())
    );
    assert_eq!(head["x-why"], "bug");
    assert_eq!(
        Ending::of(&answer).unwrap().not_resent(),
        Some(NotResent::NotRetryable)
    );
}

/// A success stays where it was, and a page that is no gRPC is none of ours.
#[tokio::test(start_paused = true)]
async fn what_is_no_failure_of_grpc_is_left_as_it_is() {
    let fine = peer([Step::answer(streamed(
        Frames::new().trailer("grpc-status", "0"),
    ))]);
    let answer = send(PeekLayer::new(), &fine, RetryPolicy::default()).await;
    assert!(!answer.headers().contains_key("grpc-status"));
    let mut page = streamed(Frames::new().wait(Duration::from_secs(1)).data("<html>"));
    page.headers_mut()
        .insert("content-type", "text/html".parse().unwrap());
    let start = clock::now();
    let peer = peer([Step::answer(page)]);
    send(PeekLayer::new(), &peer, RetryPolicy::default()).await;
    assert_eq!(clock::now(), start);
}

/// P-D5 of a server that fails late.
#[tokio::test(start_paused = true)]
async fn a_late_failure_brings_the_next_hedge_forward() {
    let config = hedged(3, 500 * MS, &[Code::Unavailable]).build().unwrap();
    let peer = peer([late(Code::Unavailable).after(100 * MS), Step::answer(ok())]);
    let hedge = HedgeLayer::grpc(HedgePolicy::builder().build().unwrap());
    let service = hedge
        .service_config(&config)
        .layer(PeekLayer::new().layer(peer.clone()));
    service.oneshot(request()).await.unwrap();
    assert_eq!(sends(&peer), [0, 100]);
}

/// Law 4: given up while it is held back, it is given up whole.
#[tokio::test(start_paused = true)]
async fn a_caller_that_goes_away_drops_the_answer_that_is_held_back() {
    let answer = streamed(Frames::new().hang());
    let watch = answer.body().watch();
    let peer = peer([Step::answer(answer)]);
    let call = send(PeekLayer::new(), &peer, RetryPolicy::default());
    assert!(tokio::time::timeout(10 * MS, call).await.is_err());
    assert!(watch.is_dropped());
}
