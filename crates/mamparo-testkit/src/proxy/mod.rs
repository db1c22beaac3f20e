//! A TCP proxy that spoils what passes through it, in front of any address.
//!
//! - [`FaultProxy`] listens on a free port of 127.0.0.1 and forwards to its target until it is dropped
//! - [`Fault`] is what it does to the bytes; [`FaultProxy::set`] switches it, also for connections that are open,
//!   and [`FaultProxy::set_for`] for a share of them
//!
//! Like all sockets it runs in real time.
//!
//! ```
//! use mamparo_testkit::proxy::{Fault, FaultProxy};
//! use mamparo_testkit::server::{Reply, Server};
//! use std::time::Duration;
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! let server = Server::start(Reply::ok()).await;
//! let proxy = FaultProxy::start(server.address()).await;
//! proxy.set(Fault::Latency(Duration::from_millis(200))).await;
//! let url = proxy.url("/slow"); // a client sends there
//! # assert!(url.ends_with("/slow"));
//! # }
//! ```

mod fault;
mod forward;
mod listener;
mod spread;
#[cfg(test)]
mod tests;
mod weather;

pub use fault::Fault;
pub use listener::FaultProxy;
