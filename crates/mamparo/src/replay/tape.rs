//! The tape of a body that several attempts read.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use bytes::{Buf, Bytes};
use http::HeaderMap;
use http_body::{Body, Frame};
use mamparo_core::{BoxError, NotResent};

use super::crowd::Crowd;
use super::recording::NotKept;

/// As many readers as a body may have, over all attempts of its operation.
const MAX_READERS: u32 = u128::BITS;

/// A body's source, and what was read of it.
pub(super) struct Tape<B> {
    pub(super) source: B,
    pub(super) frames: Vec<Bytes>,
    pub(super) trailers: Option<HeaderMap>,
    /// What the source failed with, until the reader that goes on hears it.
    pub(super) error: Option<BoxError>,
    pub(super) kept: Kept,
    pub(super) ended: bool,
    pub(super) recorded: usize,
    pub(super) bound: usize,
    /// How many readers were made; it numbers them.
    pub(super) made: u32,
    /// The readers that may read, a bit each. The oldest of them is never held up by the others.
    pub(super) readers: u128,
    /// The one reader that waits, while there is one only.
    pub(super) waiting: Option<Waker>,
    /// All that wait, once a second one was made.
    pub(super) crowd: Option<Arc<Crowd>>,
}

pub(super) type FrameOf<B> = Result<Frame<<B as Body>::Data>, <B as Body>::Error>;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kept {
    /// All that was read so far.
    Whole,
    /// Nothing but what the oldest reader has yet to read: it was too much.
    Overflowed,
    /// Nothing: the source failed.
    Failed,
}

pub(super) const fn bit(number: u32) -> u128 {
    match 1u128.checked_shl(number) {
        Some(bit) => bit,
        None => 0,
    }
}

impl<B> Tape<B> {
    pub(super) const fn new(source: B, bound: usize) -> Self {
        Self {
            source,
            frames: Vec::new(),
            trailers: None,
            error: None,
            kept: Kept::Whole,
            ended: false,
            recorded: 0,
            bound,
            made: 1,
            readers: bit(0),
            waiting: None,
            crowd: None,
        }
    }

    /// Numbers another reader, if it can still read the whole body.
    pub(super) const fn another(&mut self) -> Result<u32, NotResent> {
        match self.kept {
            Kept::Overflowed => return Err(NotResent::BodyTooLarge),
            Kept::Failed => return Err(NotResent::BodyUnavailable),
            Kept::Whole if self.made == MAX_READERS => return Err(NotResent::BodyUnavailable),
            Kept::Whole => {}
        }
        self.made += 1;
        Ok(self.made - 1)
    }

    /// The number of the oldest reader that may read.
    pub(super) const fn oldest(&self) -> u32 {
        self.readers.trailing_zeros()
    }

    pub(super) const fn may_read(&self, reader: u32) -> bool {
        self.readers & bit(reader) != 0
    }
}

impl<B> Tape<B>
where
    B: Body + Unpin,
    B::Error: Into<BoxError>,
{
    /// The source's next frame, if it is there at once. Whoever reads later is woken by a poll of its own.
    pub(super) fn poll_at_once(&mut self) -> Option<Option<FrameOf<B>>> {
        let mut cx = Context::from_waker(Waker::noop());
        match Pin::new(&mut self.source).poll_frame(&mut cx) {
            Poll::Ready(frame) => Some(frame),
            Poll::Pending => None,
        }
    }

    /// Keeps what was read before there is a reader: the first one gets it, also where it is too much for the others.
    pub(super) fn keep(&mut self, data: Bytes) {
        self.recorded = self.recorded.saturating_add(data.len().max(1));
        if self.recorded > self.bound {
            self.kept = Kept::Overflowed;
        }
        self.frames.push(data);
    }

    /// Reads one more frame from the source and records it.
    pub(super) fn advance(
        &mut self,
        reader: u32,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, BoxError>> {
        let frame = match ready!(self.poll_source(reader, cx)) {
            Some(Ok(frame)) => frame,
            Some(Err(error)) => {
                self.fail(reader, error.into());
                self.frames = Vec::new();
                return Poll::Ready(Ok(None));
            }
            None => {
                self.end(None);
                return Poll::Ready(Ok(None));
            }
        };
        Poll::Ready(match frame.into_data() {
            Ok(mut data) => self
                .record(reader, data.copy_to_bytes(data.remaining()))
                .map(Some)
                .map_err(Into::into),
            Err(frame) => {
                self.end(frame.into_trailers().ok());
                Ok(None)
            }
        })
    }

    fn poll_source(&mut self, reader: u32, cx: &mut Context<'_>) -> Poll<Option<FrameOf<B>>> {
        let Some(crowd) = &self.crowd else {
            let frame = Pin::new(&mut self.source).poll_frame(cx);
            if frame.is_pending() {
                self.waiting = Some(cx.waker().clone());
            }
            return frame;
        };
        crowd.join(reader, cx.waker());
        let all = Waker::from(Arc::clone(crowd));
        Pin::new(&mut self.source).poll_frame(&mut Context::from_waker(&all))
    }

    /// The source failed: `reader` hears it, the others read no more.
    pub(super) fn fail(&mut self, reader: u32, error: BoxError) {
        self.ended = true;
        self.kept = Kept::Failed;
        self.readers = bit(reader);
        self.error = Some(error);
    }

    pub(super) fn end(&mut self, trailers: Option<HeaderMap>) {
        self.trailers = trailers;
        self.ended = true;
    }

    fn record(&mut self, reader: u32, data: Bytes) -> Result<Bytes, NotKept> {
        let oldest = self.oldest() == reader;
        match self.kept {
            Kept::Whole => {
                // An empty frame takes a place too: without end of them the tape would grow without bound.
                self.recorded = self.recorded.saturating_add(data.len().max(1));
                if self.recorded <= self.bound {
                    self.frames.push(data.clone());
                    return Ok(data);
                }
                self.kept = Kept::Overflowed;
                self.readers = bit(self.oldest());
                if !oldest {
                    // The oldest is behind, and must not miss what only this tape still has.
                    self.frames.push(data);
                    return Err(NotKept);
                }
            }
            // The oldest reader has read all that had been kept for it.
            Kept::Overflowed | Kept::Failed => {}
        }
        self.frames = Vec::new();
        Ok(data)
    }
}
