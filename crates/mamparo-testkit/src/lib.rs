//! Scripted peers for mamparo's own tests.
//!
//! - [`service`]: plain tower services that answer by script, and checkers of how a layer treats them
//! - [`body`]: HTTP bodies that yield by script and tell what was done to them
//! - [`server`]: real HTTP/1.1 and HTTP/2 servers on loopback that answer, stall and break by script
//! - [`proxy`]: a TCP proxy that delays, stalls, cuts or refuses, switched while it runs
//! - [`private`]: servers of a test's own, to be stopped and killed
//! - [`laws`]: what every layer must keep, one assertion a law, for any layer

#![expect(
    clippy::panic,
    clippy::expect_used,
    reason = "a checker tells its test what is wrong by panicking"
)]

pub mod body;
pub mod grpc;
pub mod laws;
pub mod private;
pub mod proxy;
pub mod server;
pub mod service;
mod sync;

pub use mamparo_core::BoxError;
