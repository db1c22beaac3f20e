//! A body that was read ahead, or not.

use std::fmt;
use std::future::poll_fn;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use pin_project::pin_project;

/// A body as it came, or what was read of it and what follows.
#[pin_project]
pub struct IdempotencyBody<B: Body> {
    #[pin]
    content: Content<B>,
}

#[pin_project(project = Part)]
enum Content<B: Body> {
    /// As it came.
    Untouched(#[pin] B),
    /// All that remains, read.
    Whole {
        data: Bytes,
        trailers: Option<HeaderMap>,
    },
    /// What was read, and the rest.
    Begun { first: Bytes, rest: Pin<Box<B>> },
    /// What was read, and why there is no more.
    Broken {
        first: Bytes,
        error: Option<B::Error>,
    },
}

/// What a bounded reading came to.
pub(super) enum Read<B: Body> {
    /// All of it.
    Whole {
        data: Bytes,
        trailers: Option<HeaderMap>,
    },
    /// There is more than the bound.
    Larger(IdempotencyBody<B>),
    /// It broke off.
    Broken(IdempotencyBody<B>),
}

/// Reads a body up to a bound, and shows the first `bound` bytes to whoever hashes them.
pub(super) async fn read<B: Body<Data = Bytes>>(
    body: B,
    bound: usize,
    mut seen: impl FnMut(&[u8]),
) -> Read<B> {
    let mut body = Box::pin(body);
    let (mut first, mut more) = (Bytes::new(), BytesMut::new());
    let mut trailers: Option<HeaderMap> = None;
    let mut length = 0;
    while let Some(frame) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
        let frame = match frame {
            Ok(frame) => frame,
            Err(error) => return Read::Broken(IdempotencyBody::broken(join(first, &more), error)),
        };
        let data = match frame.into_data() {
            Ok(data) => data,
            Err(frame) => {
                if let Ok(more) = frame.into_trailers() {
                    trailers.get_or_insert_with(HeaderMap::new).extend(more);
                }
                continue;
            }
        };
        // Exactly the bound, however the body is cut into frames: a hash over it says the same each time.
        seen(&data[..data.len().min(bound - length)]);
        length += data.len();
        if first.is_empty() {
            first = data;
        } else {
            more.extend_from_slice(&data);
        }
        if length > bound {
            return Read::Larger(IdempotencyBody::begun(join(first, &more), body));
        }
    }
    Read::Whole {
        data: join(first, &more),
        trailers,
    }
}

/// One frame, the usual case, is not copied.
fn join(first: Bytes, more: &[u8]) -> Bytes {
    if more.is_empty() {
        return first;
    }
    let mut joined = BytesMut::with_capacity(first.len() + more.len());
    joined.extend_from_slice(&first);
    joined.extend_from_slice(more);
    joined.freeze()
}

impl<B: Body> IdempotencyBody<B> {
    pub(super) const fn untouched(body: B) -> Self {
        Self {
            content: Content::Untouched(body),
        }
    }

    pub(super) const fn whole(data: Bytes, trailers: Option<HeaderMap>) -> Self {
        Self {
            content: Content::Whole { data, trailers },
        }
    }

    const fn begun(first: Bytes, rest: Pin<Box<B>>) -> Self {
        Self {
            content: Content::Begun { first, rest },
        }
    }

    const fn broken(first: Bytes, error: B::Error) -> Self {
        let error = Some(error);
        Self {
            content: Content::Broken { first, error },
        }
    }
}

impl<B: Body<Data = Bytes>> Body for IdempotencyBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    #[inline]
    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let read = |data: &mut Bytes| (!data.is_empty()).then(|| Frame::data(mem::take(data)));
        Poll::Ready(match self.project().content.project() {
            Part::Untouched(body) => return body.poll_frame(cx),
            Part::Whole { data, trailers } => read(data)
                .or_else(|| trailers.take().map(Frame::trailers))
                .map(Ok),
            Part::Begun { first, rest } => match read(first) {
                Some(frame) => Some(Ok(frame)),
                None => return rest.as_mut().poll_frame(cx),
            },
            Part::Broken { first, error } => match read(first) {
                Some(frame) => Some(Ok(frame)),
                None => error.take().map(Err),
            },
        })
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            Content::Untouched(body) => body.is_end_stream(),
            Content::Whole { data, trailers } => data.is_empty() && trailers.is_none(),
            Content::Begun { first, rest } => first.is_empty() && rest.is_end_stream(),
            Content::Broken { .. } => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Untouched(body) => body.size_hint(),
            Content::Whole { data, .. } => SizeHint::with_exact(data.len() as u64),
            Content::Begun { first, rest } => after(first.len() as u64, &rest.size_hint()),
            Content::Broken { .. } => SizeHint::default(),
        }
    }
}

fn after(first: u64, rest: &SizeHint) -> SizeHint {
    let mut hint = SizeHint::new();
    hint.set_lower(rest.lower().saturating_add(first));
    if let Some(upper) = rest.upper().and_then(|upper| upper.checked_add(first)) {
        hint.set_upper(upper);
    }
    hint
}

impl<B: Body> fmt::Debug for IdempotencyBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.content {
            Content::Untouched(_) => "IdempotencyBody::Untouched",
            Content::Whole { .. } => "IdempotencyBody::Whole",
            Content::Begun { .. } => "IdempotencyBody::Begun",
            Content::Broken { .. } => "IdempotencyBody::Broken",
        })
    }
}
