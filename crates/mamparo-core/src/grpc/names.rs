//! The names of gRPC's headers, and its content type.

use http::header::CONTENT_TYPE as HTTP_CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue};

/// The content type of gRPC, without a suffix.
pub const CONTENT_TYPE: &str = "application/grpc";

/// The status of an answer: a [`Code`](super::Code) in decimal.
pub const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");

/// The text of a status, in the form of [`message`](super::message).
pub const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");

/// The details of a status, in base64.
pub const GRPC_STATUS_DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");

/// What remains until the caller's deadline.
pub const GRPC_TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");

/// What a server says of sending the request again; see [`Pushback`](super::Pushback).
pub const GRPC_RETRY_PUSHBACK_MS: HeaderName = HeaderName::from_static("grpc-retry-pushback-ms");

/// How many attempts were made before this one; the original carries none (gRFC A6).
pub const GRPC_PREVIOUS_RPC_ATTEMPTS: HeaderName =
    HeaderName::from_static("grpc-previous-rpc-attempts");

/// So many fields are looked through one by one: less work than the hash that a map needs.
const FEW: usize = 6;

/// Looks a field up in a head or trailers of gRPC's, which have few.
#[must_use]
pub fn field<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a HeaderValue> {
    if headers.keys_len() > FEW {
        return headers.get(name);
    }
    let found = headers.iter().find(|(there, _)| *there == name);
    found.map(|(_, value)| value)
}

/// Tells whether a message is gRPC's, by its content type: `application/grpc`, alone or with a suffix or parameters.
///
/// `application/grpc-web` is not: its trailers are in the body.
#[must_use]
pub fn is_grpc(headers: &HeaderMap) -> bool {
    let Some(value) = field(headers, &HTTP_CONTENT_TYPE) else {
        return false;
    };
    let Some((head, rest)) = value.as_bytes().split_at_checked(CONTENT_TYPE.len()) else {
        return false;
    };
    head.eq_ignore_ascii_case(CONTENT_TYPE.as_bytes())
        && matches!(rest.first(), None | Some(b'+' | b';' | b' '))
}
