//! Tests that need more than one crate, in one binary.
//!
//! - `admin` looks at a program's policies over HTTP, and acts on them
//! - `consuming` kills consumers of messages, and their broker, and counts what became of each message
//! - `dead` asks a dead dependency, and counts what reaches it
//! - `deferring` kills and stops engines of the defer plane, and their stores, and counts what their dependency did
//! - `grpc` calls and serves gRPC with other implementations at the far end
//! - `idempotency` kills servers of payments, loses their answers, and counts what was paid
//! - `interleaved` tries out how threads may interleave over shared state
//! - `isolation` lets one dependency be slow beside a healthy one
//! - `laws` runs every layer through the service laws
//! - `matrix` puts a client with the protecting layers under each kind of trouble, over real sockets
//! - `multiplied` has two layers of services retry, and counts what reaches the last
//! - `noted` reads what the protecting layers leave for whoever records a call
//! - `own_process` runs one of these tests in a process of its own
//! - `python` runs other implementations' clients and servers
//! - `queued` runs the suite of the defer plane's backends with queues in a RabbitMQ
//! - `served` stands layers behind a real server, and `server` a server's own layers
//! - `serving` runs a server from its start to its stop, under SIGTERM and behind nginx
//! - `soak` lets half an hour of random faults pass, and looks for what is still held
//! - `storm` lets a crowd of clients fail at once
//! - `telemetry` reads what a whole stack writes
//! - `tidy` holds the workspace to its own rules
//! - `together` has layers around one another, and what one refuses between them

#[cfg(test)]
mod admin;
#[cfg(test)]
mod consuming;
#[cfg(test)]
mod dead;
#[cfg(test)]
mod deferred;
#[cfg(test)]
mod deferring;
#[cfg(test)]
mod grpc;
#[cfg(test)]
mod idempotency;
#[cfg(test)]
mod interleaved;
#[cfg(test)]
mod isolation;
#[cfg(test)]
mod laws;
#[cfg(test)]
mod matrix;
#[cfg(test)]
mod multiplied;
#[cfg(test)]
mod noted;
#[cfg(test)]
#[cfg(test)]
mod own_process;
#[cfg(test)]
mod python;
#[cfg(test)]
mod queued;
#[cfg(test)]
mod served;
#[cfg(test)]
mod server;
#[cfg(test)]
mod serving;
#[cfg(test)]
mod soak;
#[cfg(test)]
mod storm;
#[cfg(test)]
mod telemetry;
#[cfg(test)]
mod tidy;
#[cfg(test)]
mod together;

/// What the files that `interleaved` reads a second time name at the root of their crate.
#[cfg(test)]
use {
    interleaved::{shard, sync},
    mamparo_core::{InvalidSetting, clock, fnv},
};
