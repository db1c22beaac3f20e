//! HTTP requests: the head is copied, the body recorded.

use std::fmt;

use ::http::{HeaderName, HeaderValue, Request};
use bytes::Bytes;
use http_body::{Body, SizeHint};
use mamparo_core::http::Http;
use mamparo_core::{BoxError, CallContext, NotResent};

use super::ahead::{Ahead, read_ahead};
use super::head::HeldHead;
use super::recording::{Reader, Recording};
use super::{Replay, ReplayBody, Safety};

/// The request header that numbers a resend: 2 for the first. The original carries none.
pub const ATTEMPT_HEADER: HeaderName = HeaderName::from_static("x-mamparo-attempt");

const EARLY_DATA: HeaderName = HeaderName::from_static("early-data");

/// What is held of an HTTP request for a resend.
pub struct HttpHeld<B> {
    head: HeldHead,
    body: HeldBody<B>,
}

enum HeldBody<B> {
    Empty,
    Whole(Bytes, SizeHint),
    Recorded(Recording<B>),
}

impl<B: Body> HttpHeld<B> {
    pub(super) fn again(
        self,
        more: bool,
    ) -> Result<(Request<ReplayBody<B>>, Option<Self>), NotResent> {
        self.with(more, Recording::take_over)
    }

    pub(super) fn beside(
        self,
        more: bool,
    ) -> Result<(Request<ReplayBody<B>>, Option<Self>), NotResent> {
        self.with(more, Recording::join)
    }

    /// The request with a body that is read from its start; held on if there may be `more`.
    fn with(
        self,
        more: bool,
        read: impl FnOnce(&Recording<B>) -> Result<Reader<B>, NotResent>,
    ) -> Result<(Request<ReplayBody<B>>, Option<Self>), NotResent> {
        let body = match &self.body {
            HeldBody::Empty => ReplayBody::empty(),
            HeldBody::Whole(data, hint) => ReplayBody::whole(data.clone(), *hint),
            HeldBody::Recorded(recording) => read(recording)?.into(),
        };
        Ok((self.head.request(body), more.then_some(self)))
    }
}

impl<B> fmt::Debug for HttpHeld<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpHeld")
            .field("method", self.head.method())
            .finish_non_exhaustive()
    }
}

/// An empty key is none: it tells no request from another.
fn is_key(value: &HeaderValue) -> bool {
    !matches!(value.as_bytes().trim_ascii(), b"" | b"\"\"")
}

/// Splits a request, whose attempts are numbered in that header.
pub(super) fn split<B>(
    numbered: &HeaderName,
    request: Request<B>,
    keep: Option<usize>,
) -> (Request<ReplayBody<B>>, Option<HttpHeld<B>>)
where
    B: Body + Unpin,
    B::Error: Into<BoxError>,
{
    let (mut head, body) = request.into_parts();
    // A proxy hands on what it was sent: its caller's number is not that of its own request. That of a resend which an
    // owner around this one makes is.
    if let Some(number) = head.headers.remove(numbered)
        && CallContext::current().attempt() > 1
    {
        head.headers.insert(numbered, number);
    }
    let hint = body.size_hint();
    let Some(bound) = keep.filter(|bound| hint.lower() <= *bound as u64) else {
        return (Request::from_parts(head, ReplayBody::once(body)), None);
    };
    let copy = HeldHead::of(&head);
    let (body, held) = if body.is_end_stream() {
        (ReplayBody::empty(), HeldBody::Empty)
    } else {
        match read_ahead(body, bound) {
            Ahead::Whole(None) => (ReplayBody::empty(), HeldBody::Empty),
            Ahead::Whole(Some(data)) => (
                ReplayBody::whole(data.clone(), hint),
                HeldBody::Whole(data, hint),
            ),
            Ahead::Begun(recording, reader) => (reader.into(), HeldBody::Recorded(recording)),
        }
    };
    let held = HttpHeld {
        head: copy,
        body: held,
    };
    (Request::from_parts(head, body), Some(held))
}

/// Numbers a request in that header.
pub(super) fn number<B>(name: &HeaderName, wire: &mut Request<B>, number: u32) {
    // A request whose header map is full goes without.
    let _full = wire
        .headers_mut()
        .try_insert(name, HeaderValue::from(number));
}

impl<B> Replay<Request<B>> for Http
where
    B: Body + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    type Wire = Request<ReplayBody<B>>;
    type Held = HttpHeld<B>;

    fn split(&self, request: Request<B>, keep: Option<usize>) -> (Self::Wire, Option<HttpHeld<B>>) {
        split(&ATTEMPT_HEADER, request, keep)
    }

    fn again(
        &self,
        held: HttpHeld<B>,
        more: bool,
    ) -> Result<(Self::Wire, Option<HttpHeld<B>>), NotResent> {
        held.again(more)
    }

    fn beside(
        &self,
        held: HttpHeld<B>,
        more: bool,
    ) -> Result<(Self::Wire, Option<HttpHeld<B>>), NotResent> {
        held.beside(more)
    }

    fn safety(&self, request: &Request<B>) -> Safety {
        let headers = request.headers();
        let safety = if self.is_idempotent(request.method()) {
            Safety::IDEMPOTENT
        } else {
            Safety::UNSAFE
        };
        safety
            .with_key(headers.get(self.key_header()).is_some_and(is_key))
            .with_early_data(headers.contains_key(&EARLY_DATA))
    }

    fn number(&self, wire: &mut Self::Wire, attempt: u32) {
        number(&ATTEMPT_HEADER, wire, attempt);
    }
}
