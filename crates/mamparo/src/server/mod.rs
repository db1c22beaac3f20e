//! The recommended layers around a server, in order, in one call.
//!
//! | # | layer | by default | why here |
//! |---|---|---|---|
//! | 1 | [`RejectionLayer`](crate::rejection) | on | further out nobody is left to hand an error to |
//! | 2 | [`ServerDeadlineLayer`](crate::server_deadline) | at most 60 s | its clock starts before any other layer can wait |
//! | 3 | [`LoadShedLayer`](crate::load_shed) | off | what is shed has cost nothing yet |
//!
//! [`grpc()`] is for tonic, [`http()`] for axum. What is yours stands further in: a bulkhead or a rate limit, both of which are
//! answered as these are. A layer of telemetry stands further out, where it sees what the caller gets. A router of both kinds
//! (`Routes::into_axum_router`) takes [`http()`], which answers each in its own words.
//!
//! - The caller's deadline bounds the handler and the answer's stream, and is inherited by every call that either makes.
//! - Expired on arrival: the handler is not called. Not in time: its future is dropped, and gRPC's caller gets
//!   `DEADLINE_EXCEEDED` and not the `CANCELLED` of tonic's own timer, in the trailers where the head has been sent.
//! - tonic's own `Server::timeout` and `concurrency_limit_per_connection` stand further out than any layer: leave them off.
//!
//! ```
//! use std::time::Duration;
//!
//! use mamparo::server;
//! use mamparo::server_deadline::ServerDeadlinePolicy;
//! use mamparo_testkit::grpc::{connect, EchoClient, EchoRequest, EchoServer, Echoing};
//! use tonic::transport::Server;
//! use tonic::transport::server::TcpIncoming;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), mamparo::BoxError> {
//! let patience = ServerDeadlinePolicy::builder().maximum(Duration::from_millis(100)).build()?;
//! let incoming = TcpIncoming::bind("127.0.0.1:0".parse()?)?;
//! let address = incoming.local_addr()?;
//! let server = Server::builder()
//!     .layer(server::grpc().deadline(patience))
//!     .add_service(EchoServer::new(Echoing)); // generated, and unchanged
//! tokio::spawn(server.serve_with_incoming(incoming));
//!
//! let slow = EchoRequest::text("hola").after(Duration::from_secs(10));
//! let status = EchoClient::new(connect(address)).say(slow).await.unwrap_err();
//! assert_eq!(status.code(), tonic::Code::DeadlineExceeded);
//! # Ok(())
//! # }
//! ```

mod layers;

pub use layers::{ServerLayers, grpc, http};

#[cfg(test)]
mod tests;
