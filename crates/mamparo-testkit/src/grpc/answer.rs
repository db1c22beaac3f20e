//! What a scripted gRPC server does with one attempt.

use crate::sync::lock;
use bytes::Bytes;
use futures_util::stream;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use http::{Response, StatusCode};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Empty, Full, StreamBody};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Mutex;
use std::time::Duration;
use tonic::{Code, Status};

/// What is done with one attempt.
#[derive(Clone, Debug)]
pub struct Answer {
    pub(super) delay: Duration,
    pub(super) act: Act,
}

#[derive(Clone, Debug)]
pub(super) enum Act {
    Echo,
    /// The fields of a Trailers-Only answer, or of the trailers of one that has the header first.
    Status {
        fields: HeaderMap,
        late: bool,
    },
    Page {
        status: StatusCode,
        html: Bytes,
    },
    Hang,
}

impl Answer {
    /// Does what the request asks for.
    #[must_use]
    pub fn echo() -> Self {
        Self::new(Act::Echo)
    }

    /// Answers with a status and nothing else: Trailers-Only.
    #[must_use]
    pub fn status(code: Code) -> Self {
        Self::message(code, &format!("scripted {code:?}"))
    }

    /// Answers with a status and a message.
    ///
    /// # Panics
    ///
    /// Panics if a header cannot hold the message.
    #[must_use]
    pub fn message(code: Code, message: &str) -> Self {
        let mut fields = HeaderMap::new();
        let status = Status::new(code, message);
        status
            .add_header(&mut fields)
            .expect("a message that headers can hold");
        Self::fields(fields)
    }

    /// Answers with these fields in the place of a status, whatever they say.
    ///
    /// # Panics
    ///
    /// Panics if a header cannot hold them.
    #[must_use]
    pub fn raw(fields: &[(&'static str, &str)]) -> Self {
        let mut answer = Self::fields(HeaderMap::new());
        for (name, value) in fields {
            answer = answer.header(name, value);
        }
        answer
    }

    /// Answers with a page of HTML, as a proxy does that knows nothing of gRPC.
    #[must_use]
    pub fn page(status: StatusCode, html: &'static str) -> Self {
        let html = Bytes::from_static(html.as_bytes());
        Self::new(Act::Page { status, html })
    }

    /// Never answers.
    #[must_use]
    pub fn hang() -> Self {
        Self::new(Act::Hang)
    }

    /// Sends one more field along with the status; twice the same name is two values.
    ///
    /// # Panics
    ///
    /// Panics if the answer has no status, or a header cannot hold the value.
    #[must_use]
    pub fn header(mut self, name: &'static str, value: &str) -> Self {
        let value = HeaderValue::from_str(value).expect("a valid value");
        self.fields_mut()
            .append(HeaderName::from_static(name), value);
        self
    }

    /// Sends the header first and the status in trailers, with no data between them.
    ///
    /// # Panics
    ///
    /// Panics if the answer has no status.
    #[must_use]
    pub fn late(mut self) -> Self {
        match &mut self.act {
            Act::Status { late, .. } => *late = true,
            other => panic!("{other:?} has no status that could come late"),
        }
        self
    }

    /// Waits before it answers.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    fn new(act: Act) -> Self {
        let delay = Duration::ZERO;
        Self { delay, act }
    }

    fn fields(fields: HeaderMap) -> Self {
        let late = false;
        Self::new(Act::Status { fields, late })
    }

    fn fields_mut(&mut self) -> &mut HeaderMap {
        match &mut self.act {
            Act::Status { fields, .. } => fields,
            other => panic!("{other:?} has no status that a field could go along with"),
        }
    }
}

/// Makes the answer of a status: all in the head, or a head that tells nothing and trailers.
pub(super) fn respond(fields: HeaderMap, late: bool) -> Response<tonic::body::Body> {
    let body = if late {
        let trailers = Ok::<_, Infallible>(Frame::trailers(fields.clone()));
        body(StreamBody::new(stream::iter([trailers])))
    } else {
        body(Empty::new())
    };
    let mut response = Response::new(body);
    if !late {
        *response.headers_mut() = fields;
    }
    let grpc = HeaderValue::from_static("application/grpc");
    response.headers_mut().insert(CONTENT_TYPE, grpc);
    response
}

/// Makes the answer of something that does not speak gRPC.
pub(super) fn page(status: StatusCode, html: Bytes) -> Response<tonic::body::Body> {
    let mut response = Response::new(body(Full::new(html)));
    *response.status_mut() = status;
    let html = HeaderValue::from_static("text/html");
    response.headers_mut().insert(CONTENT_TYPE, html);
    response
}

fn body<B>(body: B) -> tonic::body::Body
where
    B: Body<Data = Bytes, Error = Infallible> + Send + 'static,
{
    tonic::body::Body::new(body.map_err(|never| match never {}))
}

/// The answers of a server, in order; the last one is repeated.
#[derive(Debug)]
pub struct Answers(Mutex<VecDeque<Answer>>);

impl Answers {
    /// Takes the answer that is next.
    pub(super) fn next(&self) -> Answer {
        let mut list = lock(&self.0);
        let next = if list.len() > 1 {
            list.pop_front()
        } else {
            list.front().cloned()
        };
        next.unwrap_or_else(Answer::echo)
    }
}

impl<const N: usize> From<[Answer; N]> for Answers {
    fn from(answers: [Answer; N]) -> Self {
        Self::from(Vec::from(answers))
    }
}

impl From<Vec<Answer>> for Answers {
    fn from(answers: Vec<Answer>) -> Self {
        Self(Mutex::new(answers.into()))
    }
}

impl From<Answer> for Answers {
    fn from(answer: Answer) -> Self {
        Self::from([answer])
    }
}
