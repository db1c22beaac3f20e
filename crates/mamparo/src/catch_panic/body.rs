//! The body of an answer, which a handler may still be making.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use http_body::{Body, Frame, SizeHint};
use mamparo_core::BoxError;
use pin_project::pin_project;

use super::error::caught;

/// A body whose panic is its error, and its end.
#[pin_project]
pub struct CatchPanicBody<B> {
    /// None once it has panicked.
    #[pin]
    inner: Option<B>,
}

impl<B> CatchPanicBody<B> {
    #[inline]
    pub(super) const fn new(inner: B) -> Self {
        Self { inner: Some(inner) }
    }
}

impl<B: Body> Body for CatchPanicBody<B>
where
    B::Error: Into<BoxError>,
{
    type Data = B::Data;
    type Error = BoxError;

    #[inline]
    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, BoxError>>> {
        let mut inner = self.project().inner;
        let Some(body) = inner.as_mut().as_pin_mut() else {
            return Poll::Ready(None);
        };
        match caught(|| body.poll_frame(cx)) {
            Ok(polled) => polled.map(|frame| frame.map(|frame| frame.map_err(Into::into))),
            Err(panicked) => {
                let _dropped = caught(|| inner.set(None));
                Poll::Ready(Some(Err(panicked.into())))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.inner
            .as_ref()
            .map_or_else(SizeHint::default, Body::size_hint)
    }
}

impl<B: fmt::Debug> fmt::Debug for CatchPanicBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CatchPanicBody").field(&self.inner).finish()
    }
}
