//! Reads what is there of a body at once.

use bytes::{Buf, Bytes};
use http_body::{Body, Frame, SizeHint};
use mamparo_core::BoxError;

use super::recording::{Reader, Recording};
use super::tape::Tape;

/// A body of which was read what is there at once.
pub(super) enum Ahead<B> {
    /// All of it, and that was one frame or none: no tape is needed.
    Whole(Option<Bytes>),
    /// What was read is on the tape.
    Begun(Recording<B>, Reader<B>),
}

/// Reads ahead what is there at once: most bodies are one frame.
pub(super) fn read_ahead<B>(body: B, bound: usize) -> Ahead<B>
where
    B: Body + Unpin,
    B::Error: Into<BoxError>,
{
    let hint = body.size_hint();
    let mut tape = Tape::new(body, bound);
    let first = match tape.poll_at_once() {
        None => return begin(tape, hint),
        Some(None) => return Ahead::Whole(None),
        Some(Some(first)) => first,
    };
    let data = match first.map(Frame::into_data) {
        Ok(Ok(mut data)) => data.copy_to_bytes(data.remaining()),
        Ok(Err(last)) => {
            tape.end(last.into_trailers().ok());
            return begin(tape, hint);
        }
        Err(error) => {
            tape.fail(0, error.into());
            return begin(tape, hint);
        }
    };
    let second = match tape.source.is_end_stream() {
        true => Some(None),
        false => tape.poll_at_once(),
    };
    if matches!(second, Some(None)) && data.len() <= bound {
        return Ahead::Whole(Some(data));
    }
    tape.keep(data);
    match second {
        None => {}
        Some(None) => tape.end(None),
        Some(Some(Ok(frame))) => match frame.into_data() {
            Ok(mut data) => tape.keep(data.copy_to_bytes(data.remaining())),
            Err(last) => tape.end(last.into_trailers().ok()),
        },
        Some(Some(Err(error))) => tape.fail(0, error.into()),
    }
    begin(tape, hint)
}

fn begin<B: Body>(tape: Tape<B>, hint: SizeHint) -> Ahead<B> {
    let (recording, first) = Recording::begin(tape, hint);
    Ahead::Begun(recording, first)
}
