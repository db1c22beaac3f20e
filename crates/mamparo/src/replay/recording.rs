//! The recording of a body that several attempts read, one after the other or side by side.

use std::error::Error;
use std::fmt::{self, Display};
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use mamparo_core::{BoxError, NotResent};

use super::crowd::Crowd;
use super::tape::{Kept, Tape, bit};

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

impl<B: Body> Recording<B> {
    /// Goes on with a tape, and makes the first attempt's reader.
    pub(super) fn begin(tape: Tape<B>, hint: SizeHint) -> (Self, Reader<B>) {
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

impl<B> Reader<B>
where
    B: Body + Unpin,
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
        let whole = tape.kept == Kept::Whole;
        if let Some(recorded) = tape.frames.get_mut(self.next) {
            let data = match whole {
                true => recorded.clone(),
                // Nobody else reads it.
                false => mem::take(recorded),
            };
            return Poll::Ready(Some(Ok(self.took(data))));
        }
        if tape.ended {
            return Poll::Ready(self.take_last(&mut tape));
        }
        let advanced = ready!(tape.advance(self.number, cx));
        let frame = match advanced {
            Ok(Some(data)) => Some(Ok(self.took(data))),
            Ok(None) => self.take_last(&mut tape),
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

    fn take_last(&mut self, tape: &mut Tape<B>) -> Option<Result<Frame<Bytes>, BoxError>> {
        if let Some(error) = tape.error.take() {
            return Some(Err(error));
        }
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
            return tape.error.is_none() && (tape.trailers.is_none() || self.trailers_read);
        }
        tape.source.is_end_stream()
    }

    /// The source's first hint, less what this reader has read.
    pub(super) fn size_hint(&self) -> SizeHint {
        less(self.hint, self.read)
    }
}

/// What a hint says of the rest, once so much was read.
pub(super) fn less(whole: SizeHint, read: u64) -> SizeHint {
    let mut rest = SizeHint::new();
    if let Some(upper) = whole.upper() {
        rest.set_upper(upper.saturating_sub(read));
    }
    rest.set_lower(whole.lower().saturating_sub(read));
    rest
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
