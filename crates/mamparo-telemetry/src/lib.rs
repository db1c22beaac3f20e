//! Spans of operations and attempts, metrics and structured logs, through the OpenTelemetry API alone.
//!
//! | part | turns | into |
//! |---|---|---|
//! | [`OperationLayer`] | one call, as its caller sees it | an `INTERNAL` span (of an RPC a `CLIENT` one), operations by outcome |
//! | [`AttemptLayer`] | one physical send | a span (over HTTP a `CLIENT` one), its duration, a `traceparent` of its own |
//! | [`ServerCallLayer`] | one call that is served | a `SERVER` span below its caller's, its duration |
//! | [`Metrics`] | what the other layers report | metrics, and events on the operation's span |
//! | [`TracingObserver`] | what the other layers report | `tracing` records |
//! | `durable` | with the feature of that name: what the defer plane's engine does | metrics, spans that are linked across the wait |
//! | `rabbitmq` | with the feature of that name: one message, published or handled | spans that are linked across the queue |
//! | `prometheus` | with the feature of that name: what was written through its provider | the page that a Prometheus scrapes |
//!
//! No SDK is forced on a user. Providers are passed in, or the global ones are asked for at first use; one that
//! is still a no-op is never kept. Without a provider nothing is allocated.
//!
//! # Cost of metrics
//!
//! Each operation and each attempt writes a duration and a count. With the feature `sdk` they go through the bound
//! instruments of OpenTelemetry's SDK, which look up no attributes, at a third of the cost. The provider must
//! then be the SDK's: to another one these measurements may be lost.
//!
//! Names follow OpenTelemetry's semantic conventions 1.45.0; our own begin with `mamparo.`.

pub mod attempt;
#[cfg(feature = "durable")]
pub mod durable;
pub mod exchange;
mod http;
pub mod log;
pub mod metrics;
mod names;
mod noted;
pub mod operation;
#[expect(
    unnameable_types,
    reason = "roles are this crate's, and so is what they are told"
)]
mod outcome;
#[cfg(feature = "prometheus")]
pub mod prometheus;
#[cfg(feature = "rabbitmq")]
pub mod rabbitmq;
mod rpc;
pub mod semconv;
pub mod server;
mod source;
#[cfg(test)]
mod testing;

pub use attempt::AttemptLayer;
pub use log::TracingObserver;
pub use metrics::Metrics;
pub use names::MAX_NAMES;
pub use operation::OperationLayer;
pub use server::ServerCallLayer;
pub use source::RECHECK;
