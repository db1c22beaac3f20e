//! Real HTTP servers on loopback sockets that answer, stall and break by script.
//!
//! - [`Server`] listens on a free port of 127.0.0.1, HTTP/1.1 and HTTP/2 by prior knowledge, until it is dropped
//! - [`Reply`] is what it does with one request; [`Replies`] is the list of them, in order or by path
//! - [`Seen`] is what it keeps of each request
//!
//! Sockets don't obey paused time: these tests run in real time.
//!
//! ```
//! use mamparo_testkit::server::{Reply, Server};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! let busy = Reply::status(503).header("retry-after", "2").body("busy");
//! let server = Server::start([busy.clone(), busy, Reply::ok()]).await;
//! let url = server.url("/orders?id=7"); // a client sends there
//! # assert!(url.starts_with("http://127.0.0.1:"));
//! assert!(server.requests().is_empty());
//! # }
//! ```

mod connection;
mod log;
mod play;
mod replies;
mod reply;
mod scripted;
#[cfg(test)]
mod tests;
mod wire;

pub use log::Seen;
pub use replies::Replies;
pub use reply::Reply;
pub use scripted::Server;
