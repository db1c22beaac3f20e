//! How a gRPC caller is told of an error: in trailers, whether or not anything goes before them.

use std::error::Error;

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Response};
use mamparo_core::grpc;

use super::RejectionPolicy;
use super::state::Told;

/// A Trailers-Only response (gRPC over HTTP/2, "Responses").
pub(super) fn alone(mut trailers: HeaderMap) -> Response<String> {
    let content_type = HeaderValue::from_static(grpc::CONTENT_TYPE);
    trailers.insert(CONTENT_TYPE, content_type);
    let mut response = Response::new(String::new());
    *response.headers_mut() = trailers;
    response
}

/// Writes what the caller is told, or what an inner layer wants it to be told.
#[cold]
pub(super) fn trailers(
    policy: &RejectionPolicy,
    told: &Told,
    error: &(dyn Error + 'static),
) -> HeaderMap {
    if let Some(trailers) = made_inside(error).filter(|_| told.foreign) {
        return trailers;
    }
    let mut trailers = HeaderMap::new();
    let code = HeaderValue::from(u16::from(told.code.number()));
    trailers.insert(grpc::GRPC_STATUS, code);
    trailers.insert(grpc::GRPC_MESSAGE, grpc::message::encode(told.detail));
    if let Some(pushback) = told.pushback(policy.exhausted().is_some()) {
        trailers.insert(grpc::GRPC_RETRY_PUSHBACK_MS, pushback.value());
    }
    trailers
}

/// The status that a layer further in made on purpose: the error is that, and not one that has it among its causes.
#[cfg(feature = "tonic")]
fn made_inside(error: &(dyn Error + 'static)) -> Option<HeaderMap> {
    let status = error.downcast_ref::<tonic::Status>()?;
    let mut trailers = HeaderMap::new();
    status.add_header(&mut trailers).ok()?;
    Some(trailers)
}

#[cfg(not(feature = "tonic"))]
const fn made_inside(_: &(dyn Error + 'static)) -> Option<HeaderMap> {
    None
}
