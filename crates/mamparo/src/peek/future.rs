//! One attempt, until its head is handed on.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::Response;
use http::response::Parts;
use http_body::Body;
use mamparo_core::{BoxError, CallContext};
use pin_project::pin_project;
use tokio::time::Sleep;

use super::PeekedBody;
use super::body::First;
use super::state::{is_open, show_failure};
use crate::timer;

/// The future of an attempt whose head may be held back until its first frame.
#[pin_project]
#[must_use = "futures do nothing unless polled"]
pub struct PeekFuture<F, B: Body> {
    /// Until its head is there.
    #[pin]
    calling: Option<F>,
    /// None where nothing is held back.
    longest: Option<Duration>,
    /// Boxed, since it is there for some calls only, and must not move between its polls.
    peeking: Option<Box<Peeking<B>>>,
}

/// A head that is held back.
struct Peeking<B> {
    head: Parts,
    body: Pin<Box<B>>,
    /// Made once the first frame was not there.
    timer: Option<Pin<Box<Sleep>>>,
}

impl<F, B: Body> PeekFuture<F, B> {
    pub(super) const fn new(calling: F, longest: Option<Duration>) -> Self {
        Self {
            calling: Some(calling),
            longest,
            peeking: None,
        }
    }
}

impl<B> Peeking<B>
where
    B: Body,
{
    fn new(answer: Response<B>) -> Self {
        let (head, body) = answer.into_parts();
        Self {
            head,
            body: Box::pin(body),
            timer: None,
        }
    }

    /// Ready with the first frame, or when it has been waited for long enough.
    fn poll_first(&mut self, longest: Duration, cx: &mut Context<'_>) -> Poll<First<B>> {
        if let Poll::Ready(frame) = self.body.as_mut().poll_frame(cx) {
            return Poll::Ready(match frame {
                Some(frame) => First::Frame(frame),
                None => First::End,
            });
        }
        if longest.is_zero() {
            return Poll::Ready(First::Later);
        }
        let timer = (self.timer).get_or_insert_with(|| Box::pin(tokio::time::sleep(longest)));
        timer::poll(timer.as_mut(), cx).map(|()| First::Later)
    }

    fn into_answer(mut self, first: First<B>) -> Response<PeekedBody<B>> {
        if let First::Frame(Ok(frame)) = &first
            && let Some(trailers) = frame.trailers_ref()
        {
            show_failure(&mut self.head.headers, trailers);
        }
        Response::from_parts(self.head, PeekedBody::peeked(first, self.body))
    }
}

impl<F, B, E> Future for PeekFuture<F, B>
where
    F: Future<Output = Result<Response<B>, E>>,
    E: Into<BoxError>,
    B: Body,
{
    type Output = Result<Response<PeekedBody<B>>, BoxError>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let longest = this.longest.unwrap_or_default();
        let peeking = match this.peeking {
            Some(peeking) => peeking,
            None => {
                let Some(calling) = this.calling.as_mut().as_pin_mut() else {
                    return Poll::Pending; // not reached: whoever has the answer polls no more
                };
                let answer = ready!(calling.poll(cx));
                this.calling.set(None);
                let answer = answer.map_err(Into::into)?;
                if this.longest.is_none() || !is_open(&answer, &CallContext::current()) {
                    return Poll::Ready(Ok(answer.map(PeekedBody::as_it_is)));
                }
                this.peeking.insert(Box::new(Peeking::new(answer)))
            }
        };
        let first = ready!(peeking.poll_first(longest, cx));
        match this.peeking.take() {
            Some(peeking) => Poll::Ready(Ok(peeking.into_answer(first))),
            None => Poll::Pending, // not reached: it was just polled
        }
    }
}

impl<F, B: Body> fmt::Debug for PeekFuture<F, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PeekFuture")
            .field("peeking", &self.peeking.is_some())
            .finish_non_exhaustive()
    }
}
