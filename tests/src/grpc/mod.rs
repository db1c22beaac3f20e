//! Layers around tonic's clients and servers, with peers that are not ours: grpcio, and HTTP/2 spoken by script.
//!
//! - `peer` runs servers and clients of grpcio
//! - `deadlines` lets a deadline cross between the implementations
//! - `ours` puts layers around tonic
//! - `pushback` has grpcio say when it may be called again
//! - `recorded` looks at the spans and metrics that it all leaves
//! - `transport` breaks what is below gRPC
//! - `codes` carries every status in both directions

mod codes;
mod deadlines;
mod ours;
mod peer;
mod pushback;
mod recorded;
mod transport;
