//! The recording of a body that several attempts read, one after the other.

use std::error::Error;
use std::fmt::{self, Display};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use bytes::{Buf, Bytes};
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use mamparo_core::{BoxError, NotResent};

/// A body that is recorded while it is read, up to a bound.
pub(crate) struct Recording<B> {
    tape: Arc<Mutex<Tape<B>>>,
    hint: SizeHint,
}

/// Reads a recorded body from its start.
pub(crate) struct Reader<B> {
    tape: Arc<Mutex<Tape<B>>>,
    number: u32,
    next: usize,
    read: u64,
    trailers_read: bool,
    hint: SizeHint,
}

struct Tape<B> {
    source: Pin<Box<B>>,
    frames: Vec<Bytes>,
    trailers: Option<HeaderMap>,
    kept: Kept,
    ended: bool,
    recorded: usize,
    bound: usize,
    /// The reader that may read: the last one made.
    current: u32,
    waiting: Option<Waker>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kept {
    /// All that was read so far.
    Whole,
    /// Nothing: it was too much.
    Overflowed,
    /// Nothing: the source failed.
    Failed,
}

/// A body's reader was replaced by that of a later attempt.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Superseded;

impl Display for Superseded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the attempt that read this body is over: a later one reads it")
    }
}

impl Error for Superseded {}

fn lock<B>(tape: &Mutex<Tape<B>>) -> MutexGuard<'_, Tape<B>> {
    // A panic of the source poisons the lock; what was recorded before it is still whole.
    tape.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<B: Body> Recording<B> {
    pub(super) fn new(body: B, bound: usize) -> Self {
        let hint = body.size_hint();
        let tape = Tape {
            source: Box::pin(body),
            frames: Vec::new(),
            trailers: None,
            kept: Kept::Whole,
            ended: false,
            recorded: 0,
            bound,
            current: 0,
            waiting: None,
        };
        Self {
            tape: Arc::new(Mutex::new(tape)),
            hint,
        }
    }

    /// Makes the first attempt's reader.
    pub(super) fn reader(&self) -> Reader<B> {
        self.next_reader(lock(&self.tape))
    }

    /// Makes a reader for another attempt, if the body is still whole; the ones made before it fail from now on.
    pub(super) fn take_over(&self) -> Result<Reader<B>, NotResent> {
        // One lock for both: the attempt before may read on meanwhile, and so lose what was recorded.
        let tape = lock(&self.tape);
        match tape.kept {
            Kept::Overflowed => Err(NotResent::BodyTooLarge),
            Kept::Failed => Err(NotResent::BodyUnavailable),
            Kept::Whole => Ok(self.next_reader(tape)),
        }
    }

    fn next_reader(&self, mut tape: MutexGuard<'_, Tape<B>>) -> Reader<B> {
        tape.current += 1;
        let number = tape.current;
        let superseded = tape.waiting.take();
        drop(tape);
        if let Some(waker) = superseded {
            waker.wake();
        }
        Reader {
            tape: Arc::clone(&self.tape),
            number,
            next: 0,
            read: 0,
            trailers_read: false,
            hint: self.hint,
        }
    }
}

impl<B> Tape<B>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    /// Reads one more frame from the source and records it.
    fn advance(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, BoxError>> {
        let frame = match ready!(self.source.as_mut().poll_frame(cx)) {
            Some(Ok(frame)) => frame,
            Some(Err(error)) => {
                self.ended = true;
                self.forget(Kept::Failed);
                return Poll::Ready(Err(error.into()));
            }
            None => {
                self.end(None);
                return Poll::Ready(Ok(None));
            }
        };
        match frame.into_data() {
            Ok(mut data) => {
                Poll::Ready(Ok(Some(self.record(data.copy_to_bytes(data.remaining())))))
            }
            Err(frame) => {
                self.end(frame.into_trailers().ok());
                Poll::Ready(Ok(None))
            }
        }
    }

    fn end(&mut self, trailers: Option<HeaderMap>) {
        self.trailers = trailers;
        self.ended = true;
    }

    fn record(&mut self, data: Bytes) -> Bytes {
        if self.kept == Kept::Whole {
            // An empty frame takes a place too: without end of them the tape would grow without bound.
            self.recorded = self.recorded.saturating_add(data.len().max(1));
            if self.recorded > self.bound {
                self.forget(Kept::Overflowed);
            } else {
                self.frames.push(data.clone());
            }
        }
        data
    }

    fn forget(&mut self, because: Kept) {
        self.kept = because;
        self.frames = Vec::new();
    }
}

impl<B> Reader<B>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    pub(super) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let tape = Arc::clone(&self.tape);
        let mut tape = lock(&tape);
        if tape.current != self.number {
            return Poll::Ready(Some(Err(Superseded.into())));
        }
        if let Some(recorded) = tape.frames.get(self.next) {
            return Poll::Ready(Some(Ok(self.took(recorded.clone()))));
        }
        if tape.ended {
            return Poll::Ready(self.take_trailers(&tape));
        }
        match tape.advance(cx) {
            Poll::Pending => {
                tape.waiting = Some(cx.waker().clone());
                Poll::Pending
            }
            Poll::Ready(Ok(Some(data))) => Poll::Ready(Some(Ok(self.took(data)))),
            Poll::Ready(Ok(None)) => Poll::Ready(self.take_trailers(&tape)),
            Poll::Ready(Err(error)) => Poll::Ready(Some(Err(error))),
        }
    }

    fn took(&mut self, data: Bytes) -> Frame<Bytes> {
        self.next += 1;
        self.read = self.read.saturating_add(data.len() as u64);
        Frame::data(data)
    }

    fn take_trailers(&mut self, tape: &Tape<B>) -> Option<Result<Frame<Bytes>, BoxError>> {
        let trailers = tape.trailers.clone().filter(|_| !self.trailers_read)?;
        self.trailers_read = true;
        Some(Ok(Frame::trailers(trailers)))
    }

    pub(super) fn is_end_stream(&self) -> bool {
        let tape = lock(&self.tape);
        // The end that a later reader came to is not this one's: what it sent must not pass for a whole body.
        if tape.current != self.number || self.next < tape.frames.len() {
            return false;
        }
        if tape.ended {
            return tape.trailers.is_none() || self.trailers_read;
        }
        tape.source.is_end_stream()
    }

    /// The source's first hint, less what this reader has read.
    pub(super) fn size_hint(&self) -> SizeHint {
        let mut hint = SizeHint::new();
        if let Some(upper) = self.hint.upper() {
            hint.set_upper(upper.saturating_sub(self.read));
        }
        hint.set_lower(self.hint.lower().saturating_sub(self.read));
        hint
    }
}
