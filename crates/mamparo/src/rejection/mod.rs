//! Turns every error of a server into a response: outermost, where nobody is left to hand an error to.
//!
//! | error | HTTP | gRPC |
//! |---|---|---|
//! | this server's own deadline passed | 504 | `DEADLINE_EXCEEDED` (4) |
//! | a dependency timed out: deadline, attempt, stalled body | 503 | `DEADLINE_EXCEEDED` (4) |
//! | a dependency can't be reached, connect timed out, its breaker is open | 503 | `UNAVAILABLE` (14) |
//! | rate limit or bulkhead of a dependency used up | 503 | `RESOURCE_EXHAUSTED` (8) |
//! | a dependency failed: [`RetryError`], [`TransportError`], a request that can't be sent again | 502 | `UNAVAILABLE` (14) |
//! | rate limit used up, of the server's own callers | 429 | `RESOURCE_EXHAUSTED` (8) |
//! | the server's own bulkhead full | 503 | `RESOURCE_EXHAUSTED` (8) |
//! | the server overloaded | 503 | `UNAVAILABLE` (14) |
//! | request costs more than a rate limit's burst | 413 | `RESOURCE_EXHAUSTED` (8) |
//! | deadline header malformed | 400 | `INTERNAL` (13) |
//! | a [`Problem`](crate::problem::Problem) of a layer further in | its own | its own |
//! | anything else | 500 | `INTERNAL` (13) |
//!
//! - HTTP gets `application/problem+json` (RFC 9457) in words of our own: neither an error's text nor anything that the
//!   caller sent is told, but the name of the dependency. HEAD gets the headers only.
//! - gRPC, told by its content type, gets a Trailers-Only response (gRPC over HTTP/2, "Responses"): status 200,
//!   `grpc-status` and `grpc-message`. gRPC-Web is answered as HTTP is: put tonic-web's layer outside of this one.
//! - `Retry-After` is there where the rejection knows how long to wait, and says 1 s where it does not, but a later request
//!   may find what this one did not: a place, a closed breaker. It is lengthened by a random share, so that those who are
//!   refused together don't come back together. gRPC gets `grpc-retry-pushback-ms` in its place, and only
//!   where it is known: all clients come back at exactly that moment (gRFC A6), so that a guess would gather them.
//! - A rate limit and a lack of capacity have a problem type of their own
//!   (draft-ietf-httpapi-ratelimit-headers-10 §6), and so have dependencies ([`problem`](crate::problem)); the others are
//!   `about:blank`.
//! - When the handler's own attempts are spent, `x-mamparo-retry: exhausted` tells a caller's retry not to multiply
//!   them; on an error, on a response that the handler hands on as it came, and on one that it made of its error
//!   ([`Problem`](crate::problem::Problem)). To gRPC a pushback of -1 says so, as it does
//!   where no later request can succeed.
//! - With feature `tonic`, a layer further in whose error is a `tonic::Status` has it sent to gRPC as it is, as tonic does.
//! - The error itself is reported as [`What::ErrorAnswered`](mamparo_core::What::ErrorAnswered), so that it can be logged.
//!
//! An error that comes while a body is being sent cannot become a response any more, since its head has been sent. gRPC has
//! its status in the trailers, and gets it there. Any other stream breaks off, which HTTP/1.1 and HTTP/2 both show to the
//! client.
//!
//! # States
//!
//! - *calling*: the inner service works;
//! - *failed*: the inner service was not ready for good; its error is answered when the request comes.
//!
//! # When not
//!
//! On a client, where errors are what its caller decides by. Not for a handler's own errors either, which axum asks for as
//! responses: make those with [`Problem`](crate::problem::Problem).
//!
//! ```
//! use http::{Request, StatusCode};
//! use mamparo::rejection::RejectionLayer;
//! use mamparo::server_deadline::{ServerDeadlineLayer, ServerDeadlinePolicy};
//! use std::convert::Infallible;
//! use tower::{ServiceBuilder, ServiceExt};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = ServiceBuilder::new()
//!     .layer(RejectionLayer::default())
//!     .layer(ServerDeadlineLayer::http(ServerDeadlinePolicy::default()))
//!     .service_fn(async |_: Request<String>| {
//!         std::future::pending::<Result<http::Response<String>, Infallible>>().await
//!     });
//! let request = Request::get("/").header("x-request-timeout-ms", "200").body(String::new())?;
//! let response = server.oneshot(request).await?; // its error is `Infallible`
//! assert_eq!(response.status(), StatusCode::GATEWAY_TIMEOUT);
//! assert_eq!(response.headers()["content-type"], "application/problem+json");
//! # Ok(())
//! # }
//! ```
//!
//! [`RetryError`]: mamparo_core::RetryError
//! [`TransportError`]: mamparo_core::TransportError

mod answer;
mod body;
mod config;
mod future;
mod grpc;
mod layer;
mod service;

pub use body::RejectionBody;
pub use config::{RejectionBuilder, RejectionPolicy};
pub use future::RejectionFuture;
pub use layer::RejectionLayer;
pub use service::RejectionService;

#[cfg(test)]
mod tests;
