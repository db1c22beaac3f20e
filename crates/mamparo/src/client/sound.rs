//! What tonic can't read of an answer: it panics where the details of a status are no base64, forgets the status where its text is
//! no UTF-8, and reads a page as a message.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use ::http::header::CONTENT_TYPE;
use ::http::{HeaderMap, Response, StatusCode};
use ::tonic::Status;
use ::tonic::body::Body;
use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use mamparo_core::TransportError;
use mamparo_core::grpc::{
    Code, GRPC_MESSAGE, GRPC_STATUS, GRPC_STATUS_DETAILS, field, is_grpc, message,
};

use super::proof::prove;

/// Padded or not: both are written.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Mends a text and drops details that can't be read, in the head and in the trailers, and says of a page that it is no answer.
pub(super) fn sound(mut answer: Response<Body>) -> Response<SoundBody> {
    let status = answer.status();
    if status != StatusCode::OK || !is_grpc(answer.headers()) {
        name(status, answer.headers_mut());
    }
    check(answer.headers_mut());
    answer.map(SoundBody)
}

/// What has no status gets the one that gRPC reads there ("HTTP to gRPC Status Code Mapping"), and a text that says why.
#[cold]
fn name(status: StatusCode, headers: &mut HeaderMap) {
    if headers.contains_key(&GRPC_STATUS) {
        return;
    }
    let content = headers.get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
    let text = format!(
        "the answer is not gRPC's: HTTP status {}, content type {}",
        status.as_u16(),
        content.unwrap_or("missing")
    );
    // An answer whose header map is full goes without.
    let _full = headers.try_insert(
        GRPC_STATUS,
        u16::from(Code::from_http(status).number()).into(),
    );
    let _full = headers.try_insert(GRPC_MESSAGE, message::encode(&text));
}

fn check(headers: &mut HeaderMap) {
    if let Some(text) = headers.get(&GRPC_MESSAGE) {
        let text = message::decode(text);
        if text.contains(char::REPLACEMENT_CHARACTER) {
            headers.insert(GRPC_MESSAGE, message::encode(&text));
        }
    }
    let Some(details) = field(headers, &GRPC_STATUS_DETAILS) else {
        return;
    };
    if BASE64.decode(details.as_bytes()).is_err() {
        headers.remove(&GRPC_STATUS_DETAILS);
    }
}

/// Gives a transport's error the status that it stands for: tonic finds it for some, and calls the others unknown.
pub(super) fn status_of(error: TransportError) -> Status {
    let code = i32::from(error.code().number());
    let mut status = Status::new(code.into(), error.to_string());
    status.set_source(Arc::new(error));
    status
}

/// Does so for an error amid the answer, of which tonic says no more than that it is one of HTTP/2.
#[cold]
fn explain(status: &mut Status) {
    let error = prove(status.clone(), false);
    if error.code() != Code::Unknown {
        *status = status_of(error);
    }
}

/// An answer's body, in whose trailers the text and the details of a status can be read.
#[derive(Debug, Default)]
pub struct SoundBody(Body);

impl http_body::Body for SoundBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let mut frame = ready!(Pin::new(&mut self.0).poll_frame(cx));
        match &mut frame {
            Some(Ok(frame)) => {
                if let Some(trailers) = frame.trailers_mut() {
                    check(trailers);
                }
            }
            Some(Err(status)) if status.code() == ::tonic::Code::Unknown => explain(status),
            Some(Err(_)) | None => {}
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}
