//! Layers around tonic's clients and servers, with peers that are not ours: grpcio, and HTTP/2 spoken by script.
//!
//! - `peer` runs servers and clients of grpcio
//! - `deadlines` lets a deadline cross between the implementations
//! - `ours` puts layers around tonic
//! - `peek` lets servers of grpcio say late that they failed
//! - `pushback` has grpcio say when it may be called again
//! - `recorded` looks at the spans and metrics that it all leaves
//! - `relay` is a service between two others
//! - `transport` breaks what is below gRPC
//! - `codes` carries every status in both directions
//! - `streams` lets all kinds of call end at a deadline, with `endless` to answer them
//! - `chain` has gRPC and HTTP call each other, with less and less time
//! - `vectors` sends and answers bytes as the standard has them
//! - `service_config` gives the same settings to grpcio and to us

mod chain;
mod codes;
mod deadlines;
mod endless;
mod ours;
mod peek;
mod peer;
mod pushback;
mod recorded;
mod relay;
mod service_config;
mod streams;
mod transport;
mod vectors;

pub(crate) use ours::Ours;
