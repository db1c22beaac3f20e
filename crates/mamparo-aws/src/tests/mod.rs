//! Against a local server, started for them.

mod conformance;
mod failing;
mod harness;
mod queues;
mod resources;
mod strict;
mod support;
