//! The body of an answer that may have been read to be judged.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use pin_project::pin_project;

/// The body of an answer: as it came, or what was read of it to judge it and what follows.
#[pin_project]
pub struct DeferBody<D: Body>(#[pin] Content<D>);

#[pin_project(project = Part)]
enum Content<D: Body> {
    /// As it came.
    Untouched(#[pin] D),
    /// What was read, then its trailers or why it broke off, then what was not read.
    Read {
        first: Bytes,
        last: Option<Result<Frame<Bytes>, D::Error>>,
        rest: Option<Pin<Box<D>>>,
    },
}

/// What was read of a body, to be judged.
pub(super) struct Read<D: Body> {
    /// At least all of it, or the bound.
    pub(super) data: Bytes,
    /// It broke off.
    pub(super) broken: bool,
    /// The same body, to be read as if nothing had been.
    pub(super) body: DeferBody<D>,
}

/// Reads a body up to a bound.
pub(super) async fn read<D: Body<Data = Bytes>>(body: D, bound: usize) -> Read<D> {
    let mut body = Box::pin(body);
    let (mut data, mut last, mut rest) = (BytesMut::new(), None, None);
    while let Some(frame) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
        match frame.map(Frame::into_data) {
            Ok(Ok(more)) => data.extend_from_slice(&more),
            Ok(Err(trailers)) => last = Some(Ok(trailers)),
            Err(error) => last = Some(Err(error)),
        }
        if last.is_some() {
            break;
        }
        if data.len() > bound {
            rest = Some(body);
            break;
        }
    }
    let data = data.freeze();
    Read {
        broken: matches!(last, Some(Err(_))),
        body: DeferBody(Content::Read {
            first: data.clone(),
            last,
            rest,
        }),
        data,
    }
}

impl<D: Body> DeferBody<D> {
    pub(super) const fn untouched(body: D) -> Self {
        Self(Content::Untouched(body))
    }
}

impl<D: Body<Data = Bytes>> Body for DeferBody<D> {
    type Data = Bytes;
    type Error = D::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, D::Error>>> {
        match self.project().0.project() {
            Part::Untouched(body) => body.poll_frame(cx),
            Part::Read { first, .. } if !first.is_empty() => {
                Poll::Ready(Some(Ok(Frame::data(std::mem::take(first)))))
            }
            Part::Read { last, rest, .. } => match (last.take(), rest) {
                (None, Some(rest)) => rest.as_mut().poll_frame(cx),
                (last, _) => Poll::Ready(last),
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Content::Untouched(body) => body.is_end_stream(),
            Content::Read { first, last, rest } => {
                first.is_empty()
                    && last.is_none()
                    && rest.as_ref().is_none_or(|rest| rest.is_end_stream())
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        let (first, rest) = match &self.0 {
            Content::Untouched(body) => return body.size_hint(),
            Content::Read { first, rest, last } => match (rest, last) {
                (Some(rest), _) => (first.len() as u64, rest.size_hint()),
                (None, Some(Err(_))) => return SizeHint::default(),
                (None, _) => return SizeHint::with_exact(first.len() as u64),
            },
        };
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower().saturating_add(first));
        if let Some(upper) = rest.upper().and_then(|upper| upper.checked_add(first)) {
            hint.set_upper(upper);
        }
        hint
    }
}

impl<D: Body> fmt::Debug for DeferBody<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.0 {
            Content::Untouched(_) => "DeferBody::Untouched",
            Content::Read { .. } => "DeferBody::Read",
        })
    }
}
