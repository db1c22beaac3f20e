//! What the error of an HTTP client proves about the request.

use std::error::Error;
use std::io;

use hyper_util::client::legacy;
use mamparo_core::{BoxError, Kind, Resend, TransportError, chain};

/// Wraps a client's error with what it proves; `connect` tells whether the client says that it had no connection.
pub(super) fn prove(error: impl Into<BoxError>, connect: bool) -> TransportError {
    let error = error.into();
    let (kind, resend) = if connect {
        (Kind::Connect, Resend::Always)
    } else {
        proof(&*error)
    };
    TransportError::new(kind, resend, error)
}

fn proof(error: &(dyn Error + 'static)) -> (Kind, Resend) {
    if chain::find::<legacy::Error>(error).is_some_and(is_refusal) {
        return (Kind::Client, Resend::Never);
    }
    if let Some(proof) = chain::find::<h2::Error>(error).and_then(http2) {
        return proof;
    }
    if let Some(proof) = chain::find::<hyper::Error>(error).and_then(http) {
        return proof;
    }
    match chain::find::<io::Error>(error).map(io::Error::kind) {
        Some(io::ErrorKind::TimedOut) => (Kind::Timeout, Resend::IfIdempotent),
        Some(_) => (Kind::Reset, Resend::IfIdempotent),
        None => (Kind::Other, Resend::Never),
    }
}

/// hyper-util refuses a relative address, or a version that the connection does not speak: its only errors without a
/// cause.
fn is_refusal(error: &legacy::Error) -> bool {
    error.source().is_none() && !error.is_connect()
}

/// RFC 9113 §8.7: a refused stream was closed before any processing. A GOAWAY alone proves nothing, since the stream
/// may be among those that are still processed.
fn http2(error: &h2::Error) -> Option<(Kind, Resend)> {
    let refused = error.reason() == Some(h2::Reason::REFUSED_STREAM);
    if refused && error.is_reset() && error.is_remote() {
        return Some((Kind::Unavailable, Resend::Always));
    }
    (error.is_reset() || error.is_go_away()).then_some((Kind::Reset, Resend::IfIdempotent))
}

fn http(error: &hyper::Error) -> Option<(Kind, Resend)> {
    if error.is_canceled() {
        // Dropped before it was written to a connection.
        return Some((Kind::Reset, Resend::Always));
    }
    if error.is_timeout() {
        return Some((Kind::Timeout, Resend::IfIdempotent));
    }
    if error.is_user() {
        return Some((Kind::Client, Resend::Never));
    }
    if error.is_parse() {
        // What answers there does not speak HTTP, and won't the next time.
        return Some((Kind::Other, Resend::Never));
    }
    let broken =
        error.is_incomplete_message() || error.is_closed() || error.is_body_write_aborted();
    broken.then_some((Kind::Reset, Resend::IfIdempotent))
}
