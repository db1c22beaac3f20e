//! The script of a body.

use crate::BoxError;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use std::collections::VecDeque;
use std::time::Duration;

/// What a scripted body yields, in order.
///
/// ```
/// use mamparo_testkit::body::Frames;
/// use std::time::Duration;
/// let frames = Frames::new().data("half").wait(Duration::from_millis(10)).error("reset");
/// # drop(frames);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Frames(VecDeque<Frame>);

#[derive(Clone, Debug)]
pub(super) enum Frame {
    Data(Bytes),
    Trailers(HeaderMap),
    Wait(Duration),
    Error(String),
    Hang,
}

impl Frame {
    /// The frame or error as hyper takes it. A wait and a hang are not frames; the body never asks them.
    pub(super) fn into_http(self) -> Result<http_body::Frame<Bytes>, BoxError> {
        match self {
            Self::Data(bytes) => Ok(http_body::Frame::data(bytes)),
            Self::Trailers(trailers) => Ok(http_body::Frame::trailers(trailers)),
            Self::Error(why) => Err(why.into()),
            Self::Wait(_) | Self::Hang => unreachable!("waits are played, not yielded"),
        }
    }
}

impl Frames {
    /// Makes a script without frames: an empty body.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Yields one frame of data.
    #[must_use]
    pub fn data(self, bytes: impl Into<Bytes>) -> Self {
        self.then(Frame::Data(bytes.into()))
    }

    /// Yields trailers with this one field.
    ///
    /// # Panics
    ///
    /// Panics if the value can't stand in a header.
    #[must_use]
    pub fn trailer(self, name: &'static str, value: &str) -> Self {
        let value = HeaderValue::from_str(value).expect("the value can stand in a header");
        let field = (HeaderName::from_static(name), value);
        self.trailers(HeaderMap::from_iter([field]))
    }

    /// Yields these trailers.
    #[must_use]
    pub fn trailers(self, trailers: HeaderMap) -> Self {
        self.then(Frame::Trailers(trailers))
    }

    /// Waits this long, in tokio's time, before what follows.
    #[must_use]
    pub fn wait(self, time: Duration) -> Self {
        self.then(Frame::Wait(time))
    }

    /// Fails with this text; the body is over.
    #[must_use]
    pub fn error(self, why: impl Into<String>) -> Self {
        self.then(Frame::Error(why.into()))
    }

    /// Is pending for ever.
    #[must_use]
    pub fn hang(self) -> Self {
        self.then(Frame::Hang)
    }

    fn then(mut self, frame: Frame) -> Self {
        self.0.push_back(frame);
        self
    }

    pub(super) fn front(&mut self) -> Option<&mut Frame> {
        self.0.front_mut()
    }

    pub(super) fn pop(&mut self) -> Option<Frame> {
        self.0.pop_front()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Bytes of data that are still to come.
    pub(super) fn remaining(&self) -> u64 {
        let length = |frame: &Frame| match frame {
            Frame::Data(bytes) => bytes.len() as u64,
            _ => 0,
        };
        self.0.iter().map(length).sum()
    }
}

impl<B: Into<Bytes>> From<B> for Frames {
    fn from(data: B) -> Self {
        Self::new().data(data)
    }
}
