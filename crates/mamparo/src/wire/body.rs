//! A response body that is bounded by a deadline and by how long it may stall.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http_body::{Body, Frame, SizeHint};
use mamparo_core::grpc::Code;
use mamparo_core::{BoxError, CallContext};
use pin_project::pin_project;

use super::BodyLimits;
use super::bounds::Bounded;

/// A response body that is cut at a deadline, or when it stalls.
///
/// A cut drops the body, so that the connection is given up, and ends the stream with a
/// [`Rejection`](mamparo_core::Rejection). A frame that is there after the deadline is given only if it is the last, and no
/// trailers of gRPC's that say `CANCELLED`; an error is not.
#[pin_project]
pub struct TimedBody<B> {
    #[pin]
    body: Option<B>,
    /// Nothing where the body was at its end from the start.
    bounds: Bounded,
}

impl<B: Body> TimedBody<B> {
    /// Bounds a body; the limits are asked for unless it is at its end already.
    pub fn new(body: B, limits: impl FnOnce() -> BodyLimits) -> Self {
        let bounds = if body.is_end_stream() {
            Bounded::NOT
        } else {
            Bounded::by(limits())
        };
        Self {
            body: Some(body),
            bounds,
        }
    }
}

/// Nothing to bound: what a generated client of tonic's makes in the place of an answer.
impl<B: Default> Default for TimedBody<B> {
    fn default() -> Self {
        Self {
            body: Some(B::default()),
            bounds: Bounded::NOT,
        }
    }
}

impl<B> Body for TimedBody<B>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    type Data = B::Data;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, BoxError>>> {
        let mut this = self.project();
        let Some(mut body) = this.body.as_mut().as_pin_mut() else {
            return Poll::Ready(None);
        };
        let Some(mut bounds) = this.bounds.get() else {
            let frame = ready!(body.poll_frame(cx));
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        };
        let open = bounds.as_mut().project();
        let polled = open.limits.enter(|| match body.as_mut().poll_frame(cx) {
            Poll::Ready(frame) => Ok(frame),
            Poll::Pending => Err(CallContext::promised_wake()),
        });
        let rejection = match polled {
            Err(promised) => ready!(bounds.as_mut().poll_reached(promised, cx)),
            Ok(frame) => {
                *open.idle_until = None;
                let Some(rejection) = open
                    .limits
                    .passed_in_stream(is_cut_by_deadline(&frame, &body))
                else {
                    return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
                };
                rejection
            }
        };
        bounds.project().limits.report(&rejection);
        CallContext::cut(|| this.body.set(None));
        Poll::Ready(Some(Err(rejection.into())))
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

/// Tells whether a frame that comes after the deadline gives way to it.
fn is_cut_by_deadline<B: Body>(frame: &Option<Result<Frame<B::Data>, B::Error>>, body: &B) -> bool {
    let frame = match frame {
        None => return false,
        // The stream was broken off for the deadline's sake, by us in the other direction or by the peer.
        Some(Err(_)) => return true,
        Some(Ok(frame)) => frame,
    };
    match frame.trailers_ref() {
        // A gRPC server that obeys our deadline may say that it was cancelled.
        Some(trailers) => Code::of_headers(trailers) == Some(Code::Cancelled),
        // Without this a body that always has a frame ready would go on for ever.
        None => frame.is_data() && !body.is_end_stream(),
    }
}

impl<B: fmt::Debug> fmt::Debug for TimedBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimedBody")
            .field("body", &self.body)
            .finish_non_exhaustive()
    }
}
