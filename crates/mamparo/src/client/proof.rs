//! What the error of an HTTP client proves about the request.

use std::error::Error;
use std::io;

use hyper_util::client::legacy;
use mamparo_core::grpc::Code;
use mamparo_core::{BoxError, Kind, Resend, TransportError, chain};

/// Wraps a client's error with what it proves and, where HTTP/2 says more than that, the status of gRPC it stands for;
/// `connect` tells whether the client says that it had no connection.
pub(super) fn prove(error: impl Into<BoxError>, connect: bool) -> TransportError {
    let error = error.into();
    let (kind, resend) = if connect {
        (Kind::Connect, Resend::Always)
    } else {
        proof(&*error)
    };
    let code = chain::find::<h2::Error>(&*error).and_then(code);
    let error = TransportError::new(kind, resend, error);
    match code {
        Some(code) if !connect => error.with_code(code),
        _ => error,
    }
}

/// The table of gRPC over HTTP/2, "Errors"; a code that it doesn't have is left to the kind of failure.
fn code(error: &h2::Error) -> Option<Code> {
    use h2::Reason as R;
    if !error.is_reset() {
        return None;
    }
    Some(match error.reason()? {
        R::REFUSED_STREAM => Code::Unavailable,
        R::CANCEL => Code::Cancelled,
        R::ENHANCE_YOUR_CALM => Code::ResourceExhausted,
        R::INADEQUATE_SECURITY => Code::PermissionDenied,
        R::NO_ERROR
        | R::PROTOCOL_ERROR
        | R::INTERNAL_ERROR
        | R::FLOW_CONTROL_ERROR
        | R::SETTINGS_TIMEOUT
        | R::FRAME_SIZE_ERROR
        | R::COMPRESSION_ERROR
        | R::CONNECT_ERROR => Code::Internal,
        _ => return None,
    })
}

/// Whether an error is none of a client's that anything is known of.
#[cfg(feature = "tonic")]
pub(super) fn proves_nothing(error: &(dyn Error + 'static)) -> bool {
    proof(error) == (Kind::Other, Resend::Never)
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

/// RFC 9113 §8.7: a refused stream was closed before any processing, and so was one above the last that a GOAWAY names.
/// h2 fails no other stream by a GOAWAY of the peer: those up to the last one run on, or break as the connection does.
fn http2(error: &h2::Error) -> Option<(Kind, Resend)> {
    let refused = error.is_reset() && error.reason() == Some(h2::Reason::REFUSED_STREAM);
    if error.is_remote() && (refused || error.is_go_away()) {
        return Some((Kind::Unavailable, Resend::Always));
    }
    // Amid a body, a connection that breaks is h2's error alone.
    let broken = error.is_reset() || error.is_go_away() || error.is_io();
    broken.then_some((Kind::Reset, Resend::IfIdempotent))
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
