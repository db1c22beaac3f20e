//! The decision: is a head held back, and what does the first frame make of it?

use http::{HeaderMap, Response, StatusCode};
use http_body::Body;
use mamparo_core::CallContext;
use mamparo_core::grpc::{Code, is_grpc};

/// Says whether a head is held back until the first frame: it tells no status, and another attempt may follow.
pub(super) fn is_open<B: Body>(answer: &Response<B>, context: &CallContext) -> bool {
    context.attempt() < context.max_attempts()
        && answer.status() == StatusCode::OK
        && is_grpc(answer.headers())
        && Code::of_headers(answer.headers()).is_none()
        && !answer.body().is_end_stream()
}

/// Adds trailers that say a failure to their head: it then tells what a Trailers-Only answer would.
pub(super) fn show_failure(head: &mut HeaderMap, trailers: &HeaderMap) {
    if Code::of_headers(trailers).is_none_or(|code| code == Code::Ok) {
        return;
    }
    for (name, value) in trailers {
        // A map that is full shows less; the frame itself has it all.
        let _full = head.try_append(name, value.clone());
    }
}
