//! What the server does with one request.

use super::wire::Order;
use crate::body::Frames;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use std::time::Duration;

/// How long the first half of a response has to get out before the rest fails.
const HALF_WAIT: Duration = Duration::from_millis(20);

/// What a scripted server does with one request.
///
/// Unless it answers [`early`](Reply::early), it first reads the whole request.
///
/// ```
/// use mamparo_testkit::server::Reply;
/// use std::time::Duration;
/// let slow = Reply::ok().delay(Duration::from_millis(200)).body("late");
/// let lost = Reply::close().commits("idempotency-key");
/// # drop((slow, lost));
/// ```
#[derive(Clone, Debug)]
pub struct Reply {
    pub(super) act: Act,
    pub(super) delay: Duration,
    pub(super) early: bool,
    pub(super) last: bool,
    pub(super) commits: Option<&'static str>,
}

#[derive(Clone, Debug)]
pub(super) enum Act {
    Respond(Content),
    Hang,
    RefuseStream,
    End(Order),
}

#[derive(Clone, Debug, Default)]
pub(super) struct Content {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) frames: Frames,
    pub(super) streamed: bool,
}

impl Reply {
    /// Answers 200 with an empty body.
    #[must_use]
    pub fn ok() -> Self {
        Self::new(Act::Respond(Content::default()))
    }

    /// Answers this status with an empty body.
    ///
    /// # Panics
    ///
    /// Panics if it is no status code.
    #[must_use]
    pub fn status(code: u16) -> Self {
        let status = StatusCode::from_u16(code).expect("a status code");
        Self::ok().content(|content| content.status = status)
    }

    /// Never answers; the handler runs until its client goes away.
    #[must_use]
    pub fn hang() -> Self {
        Self::new(Act::Hang)
    }

    /// Closes the connection without a response (FIN).
    #[must_use]
    pub fn close() -> Self {
        Self::new(Act::End(Order::Close))
    }

    /// Resets the connection without a response (RST).
    #[must_use]
    pub fn reset() -> Self {
        Self::new(Act::End(Order::Reset))
    }

    /// Sends half of what its `content-length` of 20 says, then breaks off.
    ///
    /// HTTP/1 closes the connection; HTTP/2 resets the stream with `INTERNAL_ERROR`.
    #[must_use]
    pub fn half() -> Self {
        let frames = Frames::new().data("first half").wait(HALF_WAIT);
        Self::ok()
            .header(header::CONTENT_LENGTH.as_str(), "20")
            .body(frames.error("the script breaks off here"))
            .streamed()
    }

    /// Writes bytes that are no HTTP, then closes the connection.
    #[must_use]
    pub fn raw(bytes: impl Into<Bytes>) -> Self {
        Self::new(Act::End(Order::Raw(bytes.into())))
    }

    /// Resets the HTTP/2 stream with `REFUSED_STREAM`: never processed (RFC 9113, 8.7). HTTP/1 closes.
    #[must_use]
    pub fn refused_stream() -> Self {
        Self::new(Act::RefuseStream)
    }

    /// Adds a header field to the response.
    ///
    /// # Panics
    ///
    /// Panics if the name or value can't stand in a header, or if the reply is no response.
    #[must_use]
    pub fn header(self, name: &str, value: &str) -> Self {
        let name = HeaderName::try_from(name).expect("a header name");
        let value = HeaderValue::try_from(value).expect("a header value");
        self.content(|content| {
            content.headers.append(name, value);
        })
    }

    /// Sets the response's body: text, bytes, or [`Frames`] with waits, errors and trailers between them.
    ///
    /// HTTP/1 sends trailers only when the request said `te: trailers`, the response names them in a
    /// `trailer` header, and the body is [`streamed`](Reply::streamed).
    ///
    /// # Panics
    ///
    /// Panics if the reply is no response.
    #[must_use]
    pub fn body(self, frames: impl Into<Frames>) -> Self {
        let frames = frames.into();
        self.content(|content| content.frames = frames)
    }

    /// Sends the body without a `content-length`: chunked, on HTTP/1.
    ///
    /// # Panics
    ///
    /// Panics if the reply is no response.
    #[must_use]
    pub fn streamed(self) -> Self {
        self.content(|content| content.streamed = true)
    }

    /// Waits this long before it answers or breaks.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Does not wait for the request's body.
    #[must_use]
    pub fn early(mut self) -> Self {
        self.early = true;
        self
    }

    /// Lets the connection take no further request: `connection: close`, or GOAWAY.
    #[must_use]
    pub fn last(mut self) -> Self {
        self.last = true;
        self
    }

    /// Counts an effect just before it answers or breaks, once for each value of this request header.
    ///
    /// A request without the header has its effect each time.
    #[must_use]
    pub fn commits(mut self, key_header: &'static str) -> Self {
        self.commits = Some(key_header);
        self
    }

    fn new(act: Act) -> Self {
        Self {
            act,
            delay: Duration::ZERO,
            early: false,
            last: false,
            commits: None,
        }
    }

    fn content(mut self, change: impl FnOnce(&mut Content)) -> Self {
        let Act::Respond(content) = &mut self.act else {
            panic!("this reply is no response: it has no status, headers or body")
        };
        change(content);
        self
    }
}
