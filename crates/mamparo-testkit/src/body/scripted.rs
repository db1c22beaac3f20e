//! The body that yields by script.

use super::frames::{Frame, Frames};
use crate::BoxError;
use crate::sync::lock;
use bytes::Bytes;
use http_body::{Body, SizeHint};
use mamparo_core::clock::{self, Instant};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::Sleep;

/// A body that yields [`Frames`], and tells its [`BodyWatch`] what was done to it.
///
/// Its hints are honest: the exact size, and the end as soon as no frame is left.
/// [`ScriptedBody::without_hints`] knows neither, as a streamed body does.
#[derive(Debug)]
pub struct ScriptedBody {
    frames: Frames,
    hints: bool,
    sleep: Option<Pin<Box<Sleep>>>,
    watch: BodyWatch,
}

impl ScriptedBody {
    /// Makes a body of these frames, with an honest size hint.
    pub fn new(frames: impl Into<Frames>) -> Self {
        Self {
            frames: frames.into(),
            hints: true,
            sleep: None,
            watch: BodyWatch::default(),
        }
    }

    /// Makes a body without data, whose end is known at once.
    #[must_use]
    pub fn empty() -> Self {
        Self::new(Frames::new())
    }

    /// Hides the size and the end until they were yielded.
    #[must_use]
    pub fn without_hints(mut self) -> Self {
        self.hints = false;
        self
    }

    /// Returns the view on what is done to this body.
    #[must_use]
    pub fn watch(&self) -> BodyWatch {
        self.watch.clone()
    }

    fn poll_wait(&mut self, time: Duration, cx: &mut Context<'_>) -> Poll<()> {
        let sleep = self
            .sleep
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(time)));
        ready!(sleep.as_mut().poll(cx));
        self.sleep = None;
        Poll::Ready(())
    }
}

impl Body for ScriptedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, BoxError>>> {
        self.watch.note(|seen| seen.polls += 1);
        while let Some(Frame::Wait(time)) = self.frames.front() {
            let time = *time;
            ready!(self.poll_wait(time, cx));
            self.frames.pop();
        }
        if let Some(Frame::Hang) = self.frames.front() {
            return Poll::Pending;
        }
        let frame = self.frames.pop();
        self.watch.note(|seen| match &frame {
            Some(Frame::Data(bytes)) => seen.bytes += bytes.len() as u64,
            Some(Frame::Error(_)) | None => seen.ended = true,
            _ => {}
        });
        Poll::Ready(frame.map(Frame::into_http))
    }

    fn is_end_stream(&self) -> bool {
        self.hints && self.frames.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        if self.hints {
            SizeHint::with_exact(self.frames.remaining())
        } else {
            SizeHint::default()
        }
    }
}

/// What a client's body is made from that is sent again.
impl From<Bytes> for ScriptedBody {
    fn from(bytes: Bytes) -> Self {
        Self::new(bytes)
    }
}

impl Drop for ScriptedBody {
    fn drop(&mut self) {
        self.watch.note(|seen| seen.dropped_at = Some(clock::now()));
    }
}

/// Sees what is done to one [`ScriptedBody`].
#[derive(Clone, Debug, Default)]
pub struct BodyWatch(Arc<Mutex<Seen>>);

#[derive(Debug, Default)]
struct Seen {
    polls: usize,
    bytes: u64,
    ended: bool,
    dropped_at: Option<Instant>,
}

impl BodyWatch {
    fn note(&self, note: impl FnOnce(&mut Seen)) {
        note(&mut lock(&self.0));
    }

    /// Returns how often a frame was asked for.
    #[must_use]
    pub fn polls(&self) -> usize {
        lock(&self.0).polls
    }

    /// Returns how many bytes of data were yielded.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        lock(&self.0).bytes
    }

    /// Tells whether the end, or an error, was yielded.
    #[must_use]
    pub fn ended(&self) -> bool {
        lock(&self.0).ended
    }

    /// Tells whether the body is gone.
    #[must_use]
    pub fn is_dropped(&self) -> bool {
        self.dropped_at().is_some()
    }

    /// Returns when the body was dropped, in tokio's time.
    #[must_use]
    pub fn dropped_at(&self) -> Option<Instant> {
        lock(&self.0).dropped_at
    }
}
