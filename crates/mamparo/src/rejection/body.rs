//! The body of a response that was the inner service's, or is ours.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project::pin_project;

/// The inner service's body, or the few bytes that say what went wrong.
#[pin_project]
pub struct RejectionBody<B> {
    #[pin]
    content: Content<B>,
}

#[pin_project(project = Part)]
enum Content<B> {
    Inner(#[pin] B),
    Ours(String),
}

impl<B> RejectionBody<B> {
    pub(super) const fn inner(body: B) -> Self {
        Self {
            content: Content::Inner(body),
        }
    }

    pub(super) const fn ours(text: String) -> Self {
        Self {
            content: Content::Ours(text),
        }
    }
}

impl<B: Body<Data = Bytes>> Body for RejectionBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    #[inline]
    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        match self.project().content.project() {
            Part::Inner(body) => body.poll_frame(cx),
            Part::Ours(text) if text.is_empty() => Poll::Ready(None),
            Part::Ours(text) => {
                let bytes = Bytes::from(std::mem::take(text));
                Poll::Ready(Some(Ok(Frame::data(bytes))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            Content::Inner(body) => body.is_end_stream(),
            Content::Ours(text) => text.is_empty(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Inner(body) => body.size_hint(),
            Content::Ours(text) => SizeHint::with_exact(text.len() as u64),
        }
    }
}

impl<B: fmt::Debug> fmt::Debug for RejectionBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.content {
            Content::Inner(body) => f.debug_tuple("RejectionBody").field(body).finish(),
            Content::Ours(text) => f.debug_tuple("RejectionBody").field(text).finish(),
        }
    }
}
