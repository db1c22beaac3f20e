//! Handing the answer's body on, to stdout or into the record.

use std::io;

use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderMap, Response, StatusCode, Version};
use http_body::Body;
use http_body_util::BodyExt;
use mamparo::fallback::{Failed, FellBack};
use mamparo_core::{BoxError, Dependency, Ending};

use super::about::{Answered, Form};
use super::ending::{causes, of_error};
use super::problem::{self, is_problem};
use super::record::Written;
use crate::exit::Exit;
use crate::output;

/// As much of a body as a JSON record holds.
pub(super) const MAX_KEPT: usize = 16 << 20;

/// An answer, and how far its body came.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) version: Version,
    pub(super) headers: HeaderMap,
    pub(super) ending: Option<Ending>,
    /// How the operation failed, where the answer is the fallback's.
    pub(super) instead_of: Option<Failed>,
    /// The body's bytes, where they are for the record, up to [`MAX_KEPT`], or say what the problem is.
    pub(super) kept: BytesMut,
    /// How many bytes arrived.
    pub(super) length: u64,
    pub(super) body: End,
}

/// How the body ended.
#[derive(Debug)]
pub(super) enum End {
    Whole,
    Broken(BoxError),
    Unwritten(io::Error),
}

/// Takes the answer in to its end.
pub(super) async fn deliver<B>(response: Response<B>, form: Form) -> Answer
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let ending = Ending::of(&response).copied();
    let instead_of = FellBack::of(&response).map(FellBack::failed);
    let (head, body) = response.into_parts();
    let mut answer = Answer {
        status: head.status,
        version: head.version,
        headers: head.headers,
        ending,
        instead_of,
        kept: BytesMut::new(),
        length: 0,
        body: End::Whole,
    };
    let taken = answer.take(body, form).await;
    answer.body = taken.err().unwrap_or(End::Whole);
    answer
}

impl Answered for Answer {
    type Record = Written;

    fn record(&self) -> Written {
        Written::of(self)
    }

    fn ending(&self) -> Option<Ending> {
        self.ending
    }

    fn instead_of(&self) -> Option<Failed> {
        self.instead_of
    }

    fn exit(&self) -> Exit {
        let failed = self.status.is_client_error() || self.status.is_server_error();
        match &self.body {
            End::Unwritten(_) => Exit::Unwritten,
            End::Broken(error) => of_error(&**error),
            End::Whole if failed => Exit::FailedAnswer,
            End::Whole => Exit::Success,
        }
    }

    fn error(&self, dependency: Dependency, attempts: u32) -> Option<String> {
        match &self.body {
            End::Whole => None,
            End::Unwritten(error) => Some(format!(
                "the answer could not be written to stdout: {error}"
            )),
            End::Broken(error) => {
                let (length, causes) = (self.length, causes(&**error, dependency));
                Some(format!(
                    "{dependency}: answer of attempt {attempts} broke off after {length} bytes: {causes}"
                ))
            }
        }
    }

    fn status(&self) -> String {
        self.status.to_string()
    }

    fn says(&self) -> Option<String> {
        let whole = self.kept.len() as u64 == self.length && is_problem(&self.headers);
        whole.then(|| problem::said(&self.kept)).flatten()
    }
}

impl Answer {
    async fn take<B>(&mut self, body: B, form: Form) -> Result<(), End>
    where
        B: Body<Data = Bytes>,
        B::Error: Into<BoxError>,
    {
        if form == Form::HeadAndBody {
            output::piece(self.head()).await.map_err(End::Unwritten)?;
        }
        let keep = match form {
            Form::Json => MAX_KEPT,
            _ if is_problem(&self.headers) => problem::MAX_READ,
            _ => 0,
        };
        let mut body = std::pin::pin!(body);
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| End::Broken(error.into()))?;
            let Ok(bytes) = frame.into_data() else {
                continue; // trailers
            };
            self.length = self.length.saturating_add(bytes.len() as u64);
            let room = keep - self.kept.len();
            self.kept.put_slice(&bytes[..bytes.len().min(room)]);
            if form != Form::Json {
                output::piece(bytes).await.map_err(End::Unwritten)?;
            }
        }
        Ok(())
    }

    /// The head, as HTTP/1 writes it.
    fn head(&self) -> Bytes {
        let mut head = BytesMut::new();
        head.put_slice(format!("{:?} {}\r\n", self.version, self.status).as_bytes());
        for (name, value) in &self.headers {
            for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
                head.put_slice(part);
            }
        }
        head.put_slice(b"\r\n");
        head.freeze()
    }
}
