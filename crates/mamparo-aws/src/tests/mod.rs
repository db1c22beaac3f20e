//! Against a local server, started for them.

mod conformance;
mod failing;
mod harness;
mod queues;
mod requests;
mod resources;
mod speed;
mod strict;
mod support;
mod whole;
