//! How a gRPC caller is told of an error: in trailers, whether or not anything goes before them.

use std::error::Error;

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use mamparo_core::grpc::{self, Pushback};

use super::RejectionPolicy;
use crate::problem::{Problem, spread};

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
    problem: &Problem,
    error: &(dyn Error + 'static),
) -> HeaderMap {
    let foreign = problem.kind().is_none() && problem.status() == StatusCode::INTERNAL_SERVER_ERROR;
    if let Some(trailers) = made_inside(error).filter(|_| foreign) {
        return trailers;
    }
    let mut trailers = HeaderMap::new();
    let code = HeaderValue::from(u16::from(problem.code().number()));
    trailers.insert(grpc::GRPC_STATUS, code);
    let message = grpc::message::encode(problem.detail());
    trailers.insert(grpc::GRPC_MESSAGE, message);
    if let Some(pushback) = problem.pushback(policy.exhausted().is_some()) {
        let pushback = match pushback {
            Pushback::After(wait) => Pushback::After(spread(wait, policy.jitter())),
            Pushback::Stop => Pushback::Stop,
        };
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
