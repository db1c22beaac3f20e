//! A request's body that does not outlast its call.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use mamparo_core::{BoxError, CallContext, Deadline, clock};
use pin_project::pin_project;

use crate::timer::{Rare, Timer};

/// A request's body that ends when its attempt must be over, with an error that resets its stream by CANCEL.
///
/// An HTTP/2 client resets a stream when nobody holds either half of it. Of a call in both directions whose answer we have
/// cut, the client itself still holds the half that it sends, for as long as the caller's body has not ended.
#[pin_project]
pub(super) struct Upload<B> {
    #[pin]
    body: Option<B>,
    until: Option<Deadline>,
    #[pin]
    timer: Rare,
    begun: bool,
}

impl<B> Upload<B> {
    /// Bounds the body of the request that is sent now.
    pub(super) fn new(body: B) -> Self {
        Self {
            body: Some(body),
            until: CallContext::current_attempt_deadline(),
            timer: Rare::default(),
            begun: false,
        }
    }
}

impl<B> Body for Upload<B>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let mut this = self.project();
        let Some(body) = this.body.as_mut().as_pin_mut() else {
            return Poll::Ready(None);
        };
        // The first frame is most calls' only one, and is never late.
        let late = *this.begun
            && this
                .until
                .is_some_and(|until| until.has_passed(clock::now()));
        *this.begun = true;
        if !late {
            if let Poll::Ready(frame) = body.poll_frame(cx) {
                return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
            }
            let Some(until) = *this.until else {
                return Poll::Pending;
            };
            ready!(this.timer.poll_until(until, cx));
        }
        // Whoever recorded this body for a resend is let go too.
        this.body.set(None);
        Poll::Ready(Some(Err(h2::Error::from(h2::Reason::CANCEL).into())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        match &self.body {
            Some(body) => body.size_hint(),
            None => SizeHint::with_exact(0),
        }
    }
}
