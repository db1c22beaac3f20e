//! One span per physical send.
//!
//! [`AttemptLayer`] stands innermost, right before the transport. Over HTTP each send becomes one `CLIENT` span that
//! follows OpenTelemetry's HTTP conventions 1.45.0, with a `traceparent` of its own for the peer, and one
//! measurement of `http.client.request.duration`. A resend, whatever caused it, carries
//! `http.request.resend_count` 1, 2, …; the first send carries none.
//!
//! An attempt of an RPC, of [`AttemptLayer::grpc`], is an `INTERNAL` span below the `CLIENT` span that the whole call has,
//! as gRPC's own libraries write it (gRFC A72): `Attempt.shop.Catalog.Find`, with `previous-rpc-attempts` and
//! `transparent-retry`. The call's duration is measured by the layer that records operations. Metadata of the request stays.
//!
//! An attempt ends
//!
//! - at the head, when that says failure, or when there is no body;
//! - with the body, when the head was good. The conventions would rather have it end at the head; but an answer
//!   that breaks half-way is a failed attempt, and only so can it be seen;
//! - when it is dropped. At or after the attempt's limit or the deadline it was cut, and its error is `timeout`;
//!   before that it was cancelled, which is no error.
//!
//! Below a span that the sampler of this process has refused, an attempt is not offered to it again, unless
//! [`AttemptLayer::offer_all`] says so: it is not recorded either, and its `traceparent` says so. Below one that
//! another process has not sampled, the sampler decides, but without attributes. Where telemetry is suppressed, as inside an
//! exporter, there is neither span nor measurement. Without a provider the request is not touched.
//!
//! The span's identity is written as W3C Trace Context, unless a global propagator is set that does more, or
//! one is passed in. Fields are replaced, never added to.
//!
//! ```
//! use http::{Request, Response};
//! use http_body_util::Empty;
//! use mamparo_core::BoxError;
//! use mamparo_telemetry::AttemptLayer;
//! use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider};
//! use tower::{Layer, ServiceExt, service_fn};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), BoxError> {
//! let exporter = InMemorySpanExporter::default();
//! let provider = SdkTracerProvider::builder().with_simple_exporter(exporter.clone()).build();
//!
//! let transport = service_fn(|request: Request<()>| async move {
//!     assert!(request.headers().contains_key("traceparent"));
//!     Ok::<_, BoxError>(Response::new(Empty::<bytes::Bytes>::new()))
//! });
//! let client = AttemptLayer::http("catalog").tracer_provider(&provider).layer(transport);
//! client.oneshot(Request::get("http://catalog:8080/items?sig=secret").body(())?).await?;
//!
//! let span = &exporter.get_finished_spans()?[0];
//! assert_eq!(span.name, "GET");
//! let url = span.attributes.iter().find(|a| a.key.as_str() == "url.full").unwrap();
//! assert_eq!(url.value.as_str(), "http://catalog:8080/items?sig=REDACTED");
//! # Ok(())
//! # }
//! ```

mod layer;
#[expect(unnameable_types, reason = "what is kept of a call is its guard's")]
mod rpc;
#[expect(unnameable_types, reason = "what is kept of a call is its guard's")]
mod send;

pub use layer::AttemptLayer;
pub use rpc::GrpcSend;
pub use send::HttpSend;

#[cfg(test)]
mod tests;
