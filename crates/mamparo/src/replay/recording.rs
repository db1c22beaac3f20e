//! The recording of a body that several attempts read, one after the other or side by side.

use std::error::Error;
use std::fmt::{self, Display};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use bytes::{Buf, Bytes};
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use mamparo_core::{BoxError, NotResent};

use super::crowd::Crowd;

/// As many readers as a body may have, over all attempts of its operation.
const MAX_READERS: u32 = u128::BITS;

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
    /// How many readers were made; it numbers them.
    made: u32,
    /// The readers that may read, a bit each. The oldest of them is never held up by the others.
    readers: u128,
    /// The one reader that waits, while there is one only.
    waiting: Option<Waker>,
    /// All that wait, once a second one was made.
    crowd: Option<Arc<Crowd>>,
}

type FrameOf<B> = Result<Frame<<B as Body>::Data>, <B as Body>::Error>;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kept {
    /// All that was read so far.
    Whole,
    /// Nothing but what the oldest reader has yet to read: it was too much.
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

/// A body's reader was given up because what it had yet to read is not kept: the attempt beside it reads on.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct NotKept;

impl Display for NotKept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "the request's body is too large to be kept: only the attempt before this one reads it",
        )
    }
}

impl Error for NotKept {}

fn lock<B>(tape: &Mutex<Tape<B>>) -> MutexGuard<'_, Tape<B>> {
    // A panic of the source poisons the lock; what was recorded before it is still whole.
    tape.lock().unwrap_or_else(PoisonError::into_inner)
}

const fn bit(number: u32) -> u128 {
    match 1u128.checked_shl(number) {
        Some(bit) => bit,
        None => 0,
    }
}

impl<B: Body> Recording<B> {
    /// Records a body, and makes the first attempt's reader.
    pub(super) fn new(body: B, bound: usize) -> (Self, Reader<B>) {
        let hint = body.size_hint();
        let tape = Tape {
            source: Box::pin(body),
            frames: Vec::new(),
            trailers: None,
            kept: Kept::Whole,
            ended: false,
            recorded: 0,
            bound,
            made: 1,
            readers: bit(0),
            waiting: None,
            crowd: None,
        };
        let recording = Self {
            tape: Arc::new(Mutex::new(tape)),
            hint,
        };
        let first = recording.reader(0);
        (recording, first)
    }

    /// Makes a reader for another attempt, if the body is still whole; the ones made before it fail from now on.
    pub(super) fn take_over(&self) -> Result<Reader<B>, NotResent> {
        // One lock for both: the attempt before may read on meanwhile, and so lose what was recorded.
        let mut tape = lock(&self.tape);
        let number = tape.another()?;
        tape.readers = bit(number);
        let superseded = (tape.waiting.take(), tape.crowd.take());
        drop(tape);
        let (one, crowd) = superseded;
        if let Some(waker) = one {
            waker.wake();
        }
        if let Some(crowd) = crowd {
            crowd.wake_all();
        }
        Ok(self.reader(number))
    }

    /// Makes a reader for an attempt beside those under way, if the body is still whole; all of them read on.
    pub(super) fn join(&self) -> Result<Reader<B>, NotResent> {
        let mut tape = lock(&self.tape);
        let oldest = tape.oldest();
        let number = tape.another()?;
        tape.readers |= bit(number);
        if tape.crowd.is_none() {
            let crowd = Arc::<Crowd>::default();
            if let Some(waker) = tape.waiting.take() {
                crowd.join(oldest, &waker);
            }
            tape.crowd = Some(crowd);
        }
        drop(tape);
        Ok(self.reader(number))
    }

    fn reader(&self, number: u32) -> Reader<B> {
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

impl<B> Tape<B> {
    /// Numbers another reader, if it can still read the whole body.
    const fn another(&mut self) -> Result<u32, NotResent> {
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
    const fn oldest(&self) -> u32 {
        self.readers.trailing_zeros()
    }

    const fn may_read(&self, reader: u32) -> bool {
        self.readers & bit(reader) != 0
    }
}

impl<B> Tape<B>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    /// Reads one more frame from the source and records it.
    fn advance(
        &mut self,
        reader: u32,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, BoxError>> {
        let frame = match ready!(self.poll_source(reader, cx)) {
            Some(Ok(frame)) => frame,
            Some(Err(error)) => {
                self.ended = true;
                self.kept = Kept::Failed;
                self.readers = bit(reader);
                self.frames = Vec::new();
                return Poll::Ready(Err(error.into()));
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
            let frame = self.source.as_mut().poll_frame(cx);
            if frame.is_pending() {
                self.waiting = Some(cx.waker().clone());
            }
            return frame;
        };
        crowd.join(reader, cx.waker());
        let all = Waker::from(Arc::clone(crowd));
        self.source
            .as_mut()
            .poll_frame(&mut Context::from_waker(&all))
    }

    fn end(&mut self, trailers: Option<HeaderMap>) {
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
        if !tape.may_read(self.number) {
            return Poll::Ready(Some(Err(if tape.kept == Kept::Whole {
                Superseded.into()
            } else {
                NotKept.into()
            })));
        }
        if let Some(recorded) = tape.frames.get(self.next) {
            return Poll::Ready(Some(Ok(self.took(recorded.clone()))));
        }
        if tape.ended {
            return Poll::Ready(self.take_trailers(&tape));
        }
        let advanced = ready!(tape.advance(self.number, cx));
        let frame = match advanced {
            Ok(Some(data)) => Some(Ok(self.took(data))),
            Ok(None) => self.take_trailers(&tape),
            Err(error) => Some(Err(error)),
        };
        let others = tape.crowd.clone();
        drop(tape);
        if let Some(others) = others {
            others.leave(self.number);
            others.wake_all();
        }
        Poll::Ready(frame)
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
        // The end that another reader came to is not this one's: what it sent must not pass for a whole body.
        if !tape.may_read(self.number) || self.next < tape.frames.len() {
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

impl<B> Drop for Reader<B> {
    fn drop(&mut self) {
        let mut tape = lock(&self.tape);
        tape.readers &= !bit(self.number);
        if let Some(crowd) = &tape.crowd {
            crowd.leave(self.number);
        }
    }
}
