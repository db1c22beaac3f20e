//! The body of a response that was the inner service's, or is ours.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use mamparo_core::BoxError;
use mamparo_core::shard::Held;
use pin_project::pin_project;

use super::layer::Shared;

/// The inner service's body, or the few bytes that say what went wrong.
///
/// A body of gRPC's that breaks ends with trailers that say why.
#[pin_project]
pub struct RejectionBody<B> {
    #[pin]
    content: Content<B>,
}

#[pin_project(project = Part)]
enum Content<B> {
    Inner(#[pin] B),
    Grpc(#[pin] B, Held<Shared>),
    Ours(String),
}

impl<B> RejectionBody<B> {
    pub(super) const fn inner(body: B) -> Self {
        Self {
            content: Content::Inner(body),
        }
    }

    pub(super) const fn grpc(body: B, shared: Held<Shared>) -> Self {
        Self {
            content: Content::Grpc(body, shared),
        }
    }

    pub(super) const fn ours(text: String) -> Self {
        Self {
            content: Content::Ours(text),
        }
    }
}

impl<B> Body for RejectionBody<B>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    #[inline]
    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let mut content = self.project().content;
        let (error, shared) = match content.as_mut().project() {
            Part::Inner(body) => {
                let frame = ready!(body.poll_frame(cx));
                return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
            }
            Part::Grpc(body, shared) => match ready!(body.poll_frame(cx)) {
                Some(Err(error)) => (error.into(), shared),
                frame => return Poll::Ready(frame.map(|frame| frame.map_err(Into::into))),
            },
            Part::Ours(text) if text.is_empty() => return Poll::Ready(None),
            Part::Ours(text) => {
                let bytes = Bytes::from(std::mem::take(text));
                return Poll::Ready(Some(Ok(Frame::data(bytes))));
            }
        };
        let trailers = shared.trailers(&*error);
        // The stream inside is over, and what it waited for is given up, before the caller hears of it.
        content.set(Content::Ours(String::new()));
        Poll::Ready(Some(Ok(Frame::trailers(trailers))))
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            Content::Inner(body) | Content::Grpc(body, _) => body.is_end_stream(),
            Content::Ours(text) => text.is_empty(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Inner(body) | Content::Grpc(body, _) => body.size_hint(),
            Content::Ours(text) => SizeHint::with_exact(text.len() as u64),
        }
    }
}

impl<B: fmt::Debug> fmt::Debug for RejectionBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.content {
            Content::Inner(body) | Content::Grpc(body, _) => {
                f.debug_tuple("RejectionBody").field(body).finish()
            }
            Content::Ours(text) => f.debug_tuple("RejectionBody").field(text).finish(),
        }
    }
}
