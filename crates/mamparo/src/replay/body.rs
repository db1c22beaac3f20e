//! The request body of one attempt.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use http_body::{Body, Frame, SizeHint};
use mamparo_core::BoxError;
use pin_project::pin_project;
use sync_wrapper::SyncWrapper;

use super::recording::Reader;

/// The request body of one attempt: empty, sent once, or recorded for a resend.
///
/// It is `Sync` whenever the body is `Send`, as reqwest wants.
#[pin_project]
pub struct ReplayBody<B>(#[pin] Source<B>);

#[pin_project(project = SourceProjected)]
enum Source<B> {
    Empty,
    /// One frame, which was there at once.
    Whole {
        data: Bytes,
        hint: SizeHint,
    },
    /// The wrapper makes it `Sync` by giving no shared access, so what it said last is kept beside it.
    Once {
        #[pin]
        body: SyncWrapper<B>,
        hint: SizeHint,
        ended: bool,
    },
    Recorded(Reader<B>),
}

impl<B> ReplayBody<B> {
    /// A body with nothing in it.
    #[must_use]
    pub const fn empty() -> Self {
        Self(Source::Empty)
    }

    /// A body of one frame, that gives the hint of the one that it was.
    pub(super) const fn whole(data: Bytes, hint: SizeHint) -> Self {
        Self(Source::Whole { data, hint })
    }

    /// A body that is sent once, and not recorded.
    #[must_use]
    pub fn once(body: B) -> Self
    where
        B: Body,
    {
        if body.is_end_stream() {
            return Self::empty();
        }
        Self(Source::Once {
            hint: body.size_hint(),
            ended: false,
            body: SyncWrapper::new(body),
        })
    }
}

impl<B> From<Reader<B>> for ReplayBody<B> {
    fn from(reader: Reader<B>) -> Self {
        Self(Source::Recorded(reader))
    }
}

impl<B> Body for ReplayBody<B>
where
    B: Body + Unpin,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let mut source = self.project().0;
        match source.as_mut().project() {
            SourceProjected::Empty => Poll::Ready(None),
            SourceProjected::Whole { data, .. } => {
                let data = std::mem::take(data);
                source.set(Source::Empty);
                Poll::Ready(Some(Ok(Frame::data(data))))
            }
            SourceProjected::Once { body, hint, ended } => {
                let mut body = body.get_pin_mut();
                let frame = body.as_mut().poll_frame(cx);
                (*hint, *ended) = (body.size_hint(), body.is_end_stream());
                frame.map(|frame| frame.map(|frame| frame.map(to_bytes).map_err(Into::into)))
            }
            SourceProjected::Recorded(reader) => reader.poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Source::Empty => true,
            Source::Whole { .. } => false,
            Source::Once { ended, .. } => *ended,
            Source::Recorded(reader) => reader.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Source::Empty => SizeHint::with_exact(0),
            Source::Whole { hint, .. } | Source::Once { hint, .. } => *hint,
            Source::Recorded(reader) => reader.size_hint(),
        }
    }
}

fn to_bytes<D: Buf>(frame: Frame<D>) -> Frame<Bytes> {
    frame.map_data(|mut data| data.copy_to_bytes(data.remaining()))
}

impl<B> fmt::Debug for ReplayBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.0 {
            Source::Empty => "ReplayBody::Empty",
            Source::Whole { .. } => "ReplayBody::Whole",
            Source::Once { .. } => "ReplayBody::Once",
            Source::Recorded(_) => "ReplayBody::Recorded",
        })
    }
}
