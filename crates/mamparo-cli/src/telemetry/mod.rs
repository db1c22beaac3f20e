//! The telemetry of this process: kept here to be drawn and counted, and sent to a collector where there is one.
//!
//! [`Pipeline`] has both providers, and what a stack needs from them. [`Figures`] is what the metrics say.
//! [`Stream`] sends the spans of what runs for long.

mod figures;
mod otlp;
mod pipeline;

pub(crate) use figures::Figures;
pub(crate) use otlp::Stream;
pub(crate) use pipeline::{Pipeline, RpcAttempts, RpcOperations};
