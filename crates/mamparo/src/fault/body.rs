//! A response body that breaks or ends before its time, or was made up.

use std::fmt;
use std::io;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use mamparo_core::BoxError;
use pin_project::pin_project;

/// How a body is spoiled; a body that is shorter passes whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BodyFault {
    /// After so many bytes it breaks, as by a reset of its connection.
    Drop(u64),
    /// After so many bytes it ends, without an error and without trailers.
    Truncate(u64),
}

/// The inner service's body, perhaps spoiled, or one that was made up.
#[pin_project]
pub struct FaultBody<B> {
    #[pin]
    content: Content<B>,
}

#[pin_project(project = Part)]
enum Content<B> {
    Inner(#[pin] B),
    /// The fault counts down the bytes that still pass.
    Cut(#[pin] B, BodyFault),
    Ours(Bytes),
    /// It broke or ended; the inner body is dropped, so that its peer sees it given up.
    Over,
}

impl BodyFault {
    const fn left(self) -> u64 {
        match self {
            Self::Drop(left) | Self::Truncate(left) => left,
        }
    }

    /// Lets as much of the data pass as is left.
    fn pass(&mut self, data: &mut Bytes) {
        let (Self::Drop(left) | Self::Truncate(left)) = self;
        let passes = usize::try_from(*left).map_or(data.len(), |left| left.min(data.len()));
        data.truncate(passes);
        *left -= passes as u64;
    }

    fn end(self) -> Option<Result<Frame<Bytes>, BoxError>> {
        match self {
            Self::Drop(_) => {
                let broke = "the body was dropped by an injected fault";
                Some(Err(
                    io::Error::new(io::ErrorKind::ConnectionReset, broke).into()
                ))
            }
            Self::Truncate(_) => None,
        }
    }
}

impl<B> FaultBody<B> {
    pub(super) const fn inner(body: B) -> Self {
        Self {
            content: Content::Inner(body),
        }
    }

    pub(super) const fn cut(body: B, fault: BodyFault) -> Self {
        Self {
            content: Content::Cut(body, fault),
        }
    }

    pub(super) const fn ours(bytes: Bytes) -> Self {
        Self {
            content: Content::Ours(bytes),
        }
    }
}

impl<B> Body for FaultBody<B>
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
        let mut content = self.project().content;
        let (body, fault) = match content.as_mut().project() {
            Part::Inner(body) => return body.poll_frame(cx).map_err(Into::into),
            Part::Cut(body, fault) => (body, fault),
            Part::Ours(bytes) if !bytes.is_empty() => {
                return Poll::Ready(Some(Ok(Frame::data(mem::take(bytes)))));
            }
            Part::Ours(_) | Part::Over => return Poll::Ready(None),
        };
        if fault.left() == 0 {
            let end = fault.end();
            content.set(Content::Over);
            return Poll::Ready(end);
        }
        let frame = ready!(body.poll_frame(cx)).map(|frame| match frame {
            Ok(frame) => Ok(frame.map_data(|mut data| {
                fault.pass(&mut data);
                data
            })),
            Err(error) => Err(error.into()),
        });
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            Content::Inner(body) => body.is_end_stream(),
            Content::Cut(_, BodyFault::Truncate(0)) | Content::Over => true,
            Content::Cut(body, fault) => fault.left() > 0 && body.is_end_stream(),
            Content::Ours(bytes) => bytes.is_empty(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Inner(body) | Content::Cut(body, BodyFault::Drop(_)) => body.size_hint(),
            Content::Cut(body, BodyFault::Truncate(left)) => at_most(&body.size_hint(), *left),
            Content::Ours(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Content::Over => SizeHint::with_exact(0),
        }
    }
}

fn at_most(promised: &SizeHint, left: u64) -> SizeHint {
    let mut hint = SizeHint::new();
    hint.set_lower(promised.lower().min(left));
    hint.set_upper(promised.upper().map_or(left, |upper| upper.min(left)));
    hint
}

impl<B> fmt::Debug for FaultBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.content {
            Content::Inner(_) => "FaultBody::Inner",
            Content::Cut(..) => "FaultBody::Cut",
            Content::Ours(_) => "FaultBody::Ours",
            Content::Over => "FaultBody::Over",
        })
    }
}
