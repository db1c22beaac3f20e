//! One span per call that is served.
//!
//! [`ServerCallLayer`] stands outermost on a server. Each call becomes one `SERVER` span below its caller's, and one
//! measurement of `http.server.request.duration` or `rpc.server.call.duration`. The span is current in the handler and
//! wherever its answer's body is made, so that calls to other services lie below it.
//!
//! A call ends
//!
//! - at the head, when that says failure;
//! - with the body or the stream, when the head was good;
//! - when it is dropped, as its caller has gone away: that is no error.
//!
//! What is an error is another question here than for the caller: a request that was itself at fault is none of the
//! server's, so neither 404 nor `NOT_FOUND` is.
//!
//! The caller's identity is read as W3C Trace Context, unless a global propagator is set that does more, or one is passed
//! in. What the caller has not sampled is offered to the sampler of this process, without attributes; where that refuses,
//! calls that the handler makes are not sampled either. Without a provider nothing is read.
//!
//! The error of the service inside is handed on as it is: `Infallible`, as axum wants it, or a boxed one.
//!
//! ```
//! use std::convert::Infallible;
//!
//! use http::{Request, Response};
//! use http_body_util::Empty;
//! use mamparo_telemetry::ServerCallLayer;
//! use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider};
//! use tower::{Layer, ServiceExt, service_fn};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let exporter = InMemorySpanExporter::default();
//! let provider = SdkTracerProvider::builder().with_simple_exporter(exporter.clone()).build();
//!
//! let catalog = service_fn(|_: Request<()>| async {
//!     let response = Response::builder().header("grpc-status", "5");
//!     Ok::<_, Infallible>(response.body(Empty::<bytes::Bytes>::new()).unwrap_or_default())
//! });
//! let served = ServerCallLayer::grpc().tracer_provider(&provider).layer(catalog);
//! served.oneshot(Request::post("/shop.Catalog/Find").body(())?).await?;
//!
//! let span = &exporter.get_finished_spans()?[0];
//! assert_eq!(span.name, "shop.Catalog/Find");
//! let code = span.attributes.iter().find(|a| a.key.as_str() == "rpc.status_code").unwrap();
//! assert_eq!(code.value.as_str(), "NOT_FOUND");
//! # Ok(())
//! # }
//! ```

mod layer;
#[expect(unnameable_types, reason = "what is kept of a call is its guard's")]
mod request;
#[expect(unnameable_types, reason = "what is kept of a call is its guard's")]
mod rpc;

pub use layer::ServerCallLayer;
pub use request::HttpServed;
pub use rpc::GrpcServed;

#[cfg(test)]
mod tests;
