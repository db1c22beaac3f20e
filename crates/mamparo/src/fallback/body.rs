//! The body of a response that is the dependency's own, or the fallback's.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http_body::{Body, Frame, SizeHint};
use mamparo_core::BoxError;
use pin_project::pin_project;

use super::places::Place;

/// The body of a response that is the dependency's own, or the fallback's.
#[pin_project]
pub struct FallbackBody<A, B>(#[pin] Source<A, B>);

#[pin_project(project = SourceProjected)]
enum Source<A, B> {
    Own(#[pin] A),
    Other {
        #[pin]
        body: B,
        /// Until the body ends.
        place: Option<Place>,
    },
}

impl<A, B> FallbackBody<A, B> {
    pub(super) const fn own(body: A) -> Self {
        Self(Source::Own(body))
    }

    pub(super) const fn other(body: B, place: Option<Place>) -> Self {
        Self(Source::Other { body, place })
    }
}

impl<A, B> Body for FallbackBody<A, B>
where
    A: Body,
    A::Error: Into<BoxError>,
    B: Body<Data = A::Data>,
    B::Error: Into<BoxError>,
{
    type Data = A::Data;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<A::Data>, BoxError>>> {
        let (body, place) = match self.project().0.project() {
            SourceProjected::Own(body) => {
                let frame = body.poll_frame(cx);
                return frame.map(|frame| frame.map(|frame| frame.map_err(Into::into)));
            }
            SourceProjected::Other { body, place } => (body, place),
        };
        let frame = ready!(body.poll_frame(cx));
        if !matches!(frame, Some(Ok(_))) {
            *place = None;
        }
        Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Source::Own(body) => body.is_end_stream(),
            Source::Other { body, .. } => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Source::Own(body) => body.size_hint(),
            Source::Other { body, .. } => body.size_hint(),
        }
    }
}

impl<A, B> fmt::Debug for FallbackBody<A, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.0 {
            Source::Own(_) => "FallbackBody::Own",
            Source::Other { .. } => "FallbackBody::Other",
        })
    }
}
