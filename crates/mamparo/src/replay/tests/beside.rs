//! Bodies that attempts read side by side.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use ::http::Request;
use bytes::Bytes;
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use mamparo_core::http::Http as Protocol;
use mamparo_core::{BoxError, NotResent};
use mamparo_testkit::body::{Frames, ScriptedBody};
use proptest::prelude::*;

use super::later::*;
use crate::replay::*;

/// The body of an attempt beside those under way; yet another can follow.
fn beside<B>(held: &mut Option<HttpHeld<B>>) -> Result<ReplayBody<B>, NotResent>
where
    B: Body + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    let (wire, next): (Attempt<B>, _) = Protocol::default().beside(held.take().unwrap(), true)?;
    *held = next;
    Ok(wire.into_body())
}

fn is_error<E: std::error::Error + 'static>(
    frame: Poll<Option<Result<Frame<Bytes>, BoxError>>>,
) -> bool {
    matches!(frame, Poll::Ready(Some(Err(error))) if error.is::<E>())
}

fn poll_raw<B>(body: &mut ReplayBody<B>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>>
where
    B: Body + Unpin,
    B::Error: Into<BoxError>,
{
    Pin::new(body).poll_frame(&mut Context::from_waker(Waker::noop()))
}

/// Row P-D7: one source, and two attempts that each read the whole of it.
#[test]
fn attempts_side_by_side_each_read_the_whole_body() {
    let frames = Frames::new()
        .data("ab")
        .data("c")
        .data("de")
        .trailer("sum", "7");
    let (mut first, mut held) = split(ScriptedBody::new(frames));
    assert_eq!(poll(&mut first), data("ab"));
    let mut second = beside(&mut held).unwrap();
    assert_eq!(
        [poll(&mut second), poll(&mut second)],
        [data("ab"), data("c")]
    );
    assert_eq!(rest(&mut first), [data("c"), data("de"), trailers()]);
    assert!(!second.is_end_stream(), "the other's end is not its own");
    assert_eq!(rest(&mut second), [data("de"), trailers()]);
    assert!(first.is_end_stream() && second.is_end_stream());
}

#[tokio::test(start_paused = true)]
async fn a_frame_that_one_reader_gets_wakes_the_others() {
    let frames = Frames::new()
        .wait(Duration::from_secs(1))
        .data("late")
        .hang();
    let (mut first, mut held) = split(ScriptedBody::new(frames));
    let (one, two) = (Arc::<Woken>::default(), Arc::<Woken>::default());
    // The first one waits by itself before there is a second, and is still woken.
    assert_eq!(
        poll_with(&mut first, &Arc::clone(&one).into()),
        Said::Pending
    );
    let mut second = beside(&mut held).unwrap();
    assert_eq!(
        poll_with(&mut second, &Arc::clone(&two).into()),
        Said::Pending
    );
    tokio::time::sleep(Duration::from_millis(1001)).await;
    assert_eq!((one.times(), two.times()), (1, 1), "the source wakes both");
    assert_eq!(
        poll_with(&mut second, &Arc::clone(&two).into()),
        data("late")
    );
    assert_eq!(
        poll_with(&mut second, &Arc::clone(&two).into()),
        Said::Pending
    );
    assert_eq!(poll(&mut first), data("late"));
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_is_dropped_leaves_the_others_awake() {
    let frames = Frames::new().wait(Duration::from_secs(1)).data("late");
    let (mut first, mut held) = split(ScriptedBody::new(frames));
    let mut second = beside(&mut held).unwrap();
    let woken = Arc::<Woken>::default();
    assert_eq!(
        poll_with(&mut first, &Arc::clone(&woken).into()),
        Said::Pending
    );
    assert_eq!(poll(&mut second), Said::Pending);
    drop(second);
    assert_eq!(said(first.frame().await), data("late"));
}

/// Row P-D7: the hedge gives way, the original is not disturbed.
#[test]
fn a_body_that_outgrows_the_bound_is_left_to_the_oldest_reader() {
    for oldest_is_ahead in [false, true] {
        let frames = Frames::new().data("1234").data("5678").data("9").data("0");
        let (mut first, mut held) = split(ScriptedBody::new(frames).without_hints());
        let mut second = beside(&mut held).unwrap();
        let mut original = vec![data("1234"), data("5678"), data("9"), data("0")];
        if oldest_is_ahead {
            for said in original.drain(..3) {
                assert_eq!(poll(&mut first), said);
            }
        } else {
            assert_eq!(
                [poll(&mut second), poll(&mut second)],
                [data("1234"), data("5678")]
            );
        }
        assert!(is_error::<NotKept>(poll_raw(&mut second)));
        assert!(!second.is_end_stream());
        assert_eq!(rest(&mut first), original);
        assert_eq!(beside(&mut held).unwrap_err(), NotResent::BodyTooLarge);
    }
}

/// The one that is oldest now reads on.
#[test]
fn a_reader_that_is_dropped_leaves_its_privilege_to_the_next() {
    let frames = Frames::new().data("1234").data("5678").data("9");
    let (first, mut held) = split(ScriptedBody::new(frames).without_hints());
    let mut second = beside(&mut held).unwrap();
    drop(first);
    assert_eq!(rest(&mut second), [data("1234"), data("5678"), data("9")]);
}

/// A source that is ready without a word, as one that was woken by somebody else.
#[derive(Debug)]
struct Silent(Vec<&'static str>, u32);

impl Body for Silent {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        self.1 += 1;
        if self.1 <= 2 {
            return Poll::Pending;
        }
        let next = self.0.pop();
        Poll::Ready(next.map(|data| Ok(Frame::data(Bytes::from(data)))))
    }
}

#[test]
fn a_frame_that_one_reader_finds_wakes_those_that_wait_for_it() {
    let (mut first, mut held) = split(Silent(vec!["a"], 0));
    let mut second = beside(&mut held).unwrap();
    let woken = Arc::<Woken>::default();
    assert_eq!(
        poll_with(&mut first, &Arc::clone(&woken).into()),
        Said::Pending
    );
    assert_eq!(poll(&mut second), data("a"));
    assert_eq!(woken.times(), 1);
}

#[test]
fn a_source_that_breaks_fails_every_reader() {
    let frames = Frames::new()
        .data("half")
        .data(" way")
        .error("the file is gone");
    let (mut first, mut held) = split(ScriptedBody::new(frames));
    let mut second = beside(&mut held).unwrap();
    assert_eq!(poll(&mut second), data("half"));
    assert_eq!(poll(&mut second), data(" way"));
    assert_eq!(poll(&mut second), Said::Error("the file is gone".into()));
    assert!(
        is_error::<NotKept>(poll_raw(&mut first)),
        "half a body is no whole one"
    );
    assert!(!first.is_end_stream());
}

#[test]
fn a_resend_takes_over_from_all_that_ran_side_by_side() {
    let (mut first, mut held) = split(ScriptedBody::new(Frames::new().data("a").data("b")));
    let mut second = beside(&mut held).unwrap();
    let mut third = again(&mut held).unwrap();
    for body in [&mut first, &mut second] {
        assert!(is_error::<Superseded>(poll_raw(body)));
    }
    assert_eq!(rest(&mut third), [data("a"), data("b")]);
}

proptest! {
    /// Row P-D7: in whatever order they read, and whoever is dropped, each sees exactly the original.
    #[test]
    fn readers_side_by_side_see_exactly_the_original(
        lengths in prop::collection::vec(0usize..20, 0..8),
        with_trailers in any::<bool>(),
        turns in prop::collection::vec((0usize..3, prop::bool::weighted(0.05)), 0..40),
    ) {
        let (body, mut original) = scripted(&lengths, with_trailers);
        original.push(Said::End);
        let (first, mut held) = Protocol::default().split(Request::new(body), Some(1000));
        let mut readers = vec![Some((first.into_body(), 0))];
        for _ in 0..2 {
            // A request without a body has nothing to share.
            readers.push(Some((beside(&mut held).unwrap(), 0)));
        }
        for (reader, dropped) in turns {
            let Some((body, at)) = &mut readers[reader] else { continue };
            if dropped {
                readers[reader] = None;
                continue;
            }
            prop_assert_eq!(&poll(body), &original[(*at).min(original.len() - 1)]);
            *at += 1;
        }
    }
}

#[test]
fn a_source_that_breaks_before_it_was_whole_is_sent_as_far_as_it_goes_and_once() {
    for half in [None, Some("half")] {
        let frames = half.into_iter().fold(Frames::new(), Frames::data);
        let (mut first, mut held) = split(ScriptedBody::new(frames.error("the file is gone")));
        assert_eq!(beside(&mut held).err(), Some(NotResent::BodyUnavailable));
        if let Some(half) = half {
            assert_eq!(poll(&mut first), data(half));
        }
        assert!(!first.is_end_stream());
        assert_eq!(poll(&mut first), Said::Error("the file is gone".into()));
    }
}

#[test]
fn what_is_read_ahead_beyond_the_bound_is_sent_once_and_let_go() {
    let long = "123456789";
    let frames = Frames::new().data(long).data("0").trailer("sum", "7");
    let (mut first, mut held) = split(ScriptedBody::new(frames).without_hints());
    assert_eq!(beside(&mut held).err(), Some(NotResent::BodyTooLarge));
    assert_eq!(poll(&mut first), data(long));
    assert_eq!(poll(&mut first), data("0"));
    assert_eq!(poll(&mut first), trailers());
    assert_eq!(poll(&mut first), Said::End);
}
