//! What a scripted body shows to its reader and to its watch.

use super::{Frames, ScriptedBody};
use http_body::Body;
use http_body_util::BodyExt;
use mamparo_core::clock;
use std::time::Duration;

#[tokio::test(start_paused = true)]
async fn yields_frames_in_order_with_waits_and_trailers() {
    let start = clock::now();
    let frames = Frames::new()
        .data("ab")
        .wait(Duration::from_secs(2))
        .data("c")
        .trailer("x-end", "1");
    let mut body = ScriptedBody::new(frames);
    assert_eq!(body.size_hint().exact(), Some(3));

    let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
    assert_eq!(
        (first.as_ref(), start.elapsed()),
        (&b"ab"[..], Duration::ZERO)
    );
    let second = body.frame().await.unwrap().unwrap().into_data().unwrap();
    assert_eq!((second.as_ref(), start.elapsed().as_secs()), (&b"c"[..], 2));
    assert!(!body.is_end_stream(), "the trailers are still to come");
    let last = body.frame().await.unwrap().unwrap();
    assert_eq!(last.trailers_ref().unwrap()["x-end"], "1");
    assert!(body.is_end_stream() && body.frame().await.is_none());
}

#[tokio::test]
async fn tells_its_watch_what_was_read_and_when_it_was_dropped() {
    let mut body = ScriptedBody::new(Frames::new().data("ab").error("reset"));
    let watch = body.watch();
    body.frame().await.unwrap().unwrap();
    assert_eq!((watch.polls(), watch.bytes(), watch.ended()), (1, 2, false));
    let error = body.frame().await.unwrap().unwrap_err();
    assert_eq!((error.to_string().as_str(), watch.ended()), ("reset", true));
    assert!(!watch.is_dropped());
    drop(body);
    assert!(watch.is_dropped());
}

#[tokio::test]
async fn a_body_without_hints_knows_neither_size_nor_end() {
    let mut body = ScriptedBody::new(Frames::new()).without_hints();
    assert_eq!(body.size_hint().upper(), None);
    assert!(!body.is_end_stream());
    assert!(body.frame().await.is_none());
    assert!(ScriptedBody::empty().is_end_stream());
}

#[tokio::test(start_paused = true)]
async fn a_hanging_body_is_pending_until_it_is_dropped() {
    let mut body = ScriptedBody::new(Frames::new().hang());
    let wait = tokio::time::timeout(Duration::from_secs(60), body.frame());
    assert!(wait.await.is_err());
}
