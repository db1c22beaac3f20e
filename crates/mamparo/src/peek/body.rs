//! A body whose first frame may have been looked at.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Buf;
use http_body::{Body, Frame, SizeHint};
use mamparo_core::BoxError;
use pin_project::pin_project;

/// A response body: as it is, or with a first frame that was looked at and comes before the rest.
#[pin_project]
pub struct PeekedBody<B: Body>(#[pin] Source<B>);

#[pin_project(project = SourceProjected)]
enum Source<B: Body> {
    AsItIs {
        #[pin]
        body: B,
    },
    Peeked {
        first: First<B>,
        body: Pin<Box<B>>,
    },
}

/// What was seen of a body.
pub(super) enum First<B: Body> {
    /// Its first frame, or why there is none.
    Frame(Result<Frame<B::Data>, B::Error>),
    /// Nothing as yet, or not any more: what follows is there.
    Later,
    /// Its end.
    End,
}

impl<B: Body> PeekedBody<B> {
    pub(super) const fn as_it_is(body: B) -> Self {
        Self(Source::AsItIs { body })
    }

    pub(super) const fn peeked(first: First<B>, body: Pin<Box<B>>) -> Self {
        Self(Source::Peeked { first, body })
    }
}

// What a tonic interceptor answers with that refuses a request.
impl<B: Body + Default> Default for PeekedBody<B> {
    fn default() -> Self {
        Self::as_it_is(B::default())
    }
}

impl<B> Body for PeekedBody<B>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    type Data = B::Data;
    type Error = BoxError;

    #[inline]
    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, BoxError>>> {
        let frame = match self.project().0.project() {
            SourceProjected::AsItIs { body } => body.poll_frame(cx),
            SourceProjected::Peeked { first, body } => match first {
                First::Later => body.as_mut().poll_frame(cx),
                First::End => return Poll::Ready(None),
                First::Frame(_) => match std::mem::replace(first, First::Later) {
                    First::Frame(frame) => Poll::Ready(Some(frame)),
                    First::Later | First::End => Poll::Ready(None), // not reached: it was just seen
                },
            },
        };
        frame.map(|frame| frame.map(|frame| frame.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Source::AsItIs { body } => body.is_end_stream(),
            Source::Peeked { first, body } => match first {
                First::Frame(_) => false,
                First::Later => body.is_end_stream(),
                First::End => true,
            },
        }
    }

    fn size_hint(&self) -> SizeHint {
        let (first, body) = match &self.0 {
            Source::AsItIs { body } => return body.size_hint(),
            Source::Peeked { first, body } => (first, body),
        };
        let rest = match first {
            First::End => return SizeHint::with_exact(0),
            First::Later => return body.size_hint(),
            First::Frame(_) => body.size_hint(),
        };
        let seen = match first {
            First::Frame(Ok(frame)) => frame.data_ref().map_or(0, |data| data.remaining() as u64),
            _ => 0,
        };
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower().saturating_add(seen));
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper.saturating_add(seen));
        }
        hint
    }
}

impl<B: Body> fmt::Debug for PeekedBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.0 {
            Source::AsItIs { .. } => "PeekedBody::AsItIs",
            Source::Peeked { .. } => "PeekedBody::Peeked",
        })
    }
}
