//! One record per operation, however often it was sent: the denominator of every ratio.
//!
//! [`OperationLayer`] stands outermost. It begins the operation, keeps it current around the call, every poll
//! and every poll of the answer's body, and opens one `INTERNAL` span, `mamparo.operation catalog`, below which
//! the spans of all attempts lie. It is no HTTP span: those belong to the attempts.
//!
//! An operation ends when the body of its answer is over, and its outcome is one of
//!
//! - `success`,
//! - a failure's kind, such as `unavailable` or `timeout`: of the last attempt, not of those that were resent,
//! - `rejected`: one of our own layers refused it before it was sent,
//! - `cancelled`: whoever called it went away. That is no error.
//!
//! An RPC, of [`OperationLayer::grpc`], is a `CLIENT` span instead, named after its method and with its status, as gRPC's
//! conventions 1.45.0 have it: one for the call, with all of its attempts. It is measured as `rpc.client.call.duration`, too.
//!
//! Only a failure and a rejection make the span's status an error. Counted are operations by outcome, their
//! duration, and those that were resent and recovered.
//!
//! Below a span that the sampler of this process has refused, an operation is not offered to it again, unless
//! [`OperationLayer::offer_all`] says so.
//!
//! ```
//! use mamparo_core::{BoxError, Plain};
//! use mamparo_telemetry::OperationLayer;
//! use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider};
//! use tower::{Layer, ServiceExt, service_fn};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), BoxError> {
//! let exporter = InMemorySpanExporter::default();
//! let provider = SdkTracerProvider::builder().with_simple_exporter(exporter.clone()).build();
//!
//! let layer = OperationLayer::new("catalog", Plain::idempotent()).tracer_provider(&provider);
//! let answer = service_fn(|_: &str| async { Ok::<_, BoxError>("three in stock") });
//! layer.layer(answer).oneshot("how many?").await?;
//!
//! assert_eq!(exporter.get_finished_spans()?[0].name, "mamparo.operation catalog");
//! # Ok(())
//! # }
//! ```

mod future;
mod guard;
mod layer;
#[expect(unnameable_types, reason = "this crate says which roles there are")]
mod role;
mod service;

pub use future::OperationFuture;
pub use guard::OperationGuard;
pub use layer::OperationLayer;
pub use role::{AnyCall, GrpcCall};
pub use service::Operation;

#[cfg(test)]
mod tests;
