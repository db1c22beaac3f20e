//! A server, put together once: its layers in order, whether it is ready, and a stop that breaks nothing off.
//!
//! | # | layer | by default | why here |
//! |---|---|---|---|
//! | 1 | telemetry | none | sees what the caller gets |
//! | 2 | [`RejectionLayer`](crate::rejection) | on | further out nobody is left to hand an error to |
//! | 3 | [`ServerDeadlineLayer`](crate::server_deadline) | at most 60 s | its clock starts before any other layer can wait |
//! | 4 | [`RateLimitLayer`](crate::rate_limit), for each caller | off | one caller's excess is no load at all |
//! | 5 | [`LoadShedLayer`](crate::load_shed) | off | what is shed has cost nothing yet, and has waited nowhere |
//! | 6 | [`BulkheadLayer`](crate::bulkhead) | off | a place in which to work; a few wait for one |
//! | 7 | idempotency keys | none | a key that was begun belongs to a request that runs |
//! | 8 | [`CatchPanicLayer`](crate::catch_panic) | on | a bug in a handler is one request's |
//!
//! [`grpc()`] is for tonic, [`http()`] for axum. Your authentication stands further out, so that a limit for each caller knows
//! who it is ([`caller`](crate::caller)). A router of both kinds (`Routes::into_axum_router`) takes [`http()`], which answers
//! each in its own words. With feature `config` all of it is read from the policy file's `[server]` table.
//!
//! - [`Readiness`] says whether what the server needs is there, and answers `/health/ready`. A missing dependency does not keep
//!   the server from starting; a bad configuration does.
//! - [`Graceful`] runs the server, and stops it when it is told to, by `termination` say (feature `signal`): not ready, no more
//!   connections, what is in flight finished or cut, telemetry flushed.
//! - Handlers return [`Problem`](crate::problem::Problem).
//!
//! - The caller's deadline bounds the handler and the answer's stream, and is inherited by every call that either makes.
//! - Expired on arrival: the handler is not called. Not in time: its future is dropped, and gRPC's caller gets
//!   `DEADLINE_EXCEEDED` and not the `CANCELLED` of tonic's own timer, in the trailers where the head has been sent.
//! - tonic's own `Server::timeout` and `concurrency_limit_per_connection` stand further out than any layer: leave them off.
//!
//! ```
//! use std::time::Duration;
//!
//! use mamparo::serve;
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
//!     .layer(serve::grpc().deadline(patience))
//!     .add_service(EchoServer::new(Echoing)); // generated, and unchanged
//! tokio::spawn(server.serve_with_incoming(incoming));
//!
//! let slow = EchoRequest::text("hola").after(Duration::from_secs(10));
//! let status = EchoClient::new(connect(address)).say(slow).await.unwrap_err();
//! assert_eq!(status.code(), tonic::Code::DeadlineExceeded);
//! # Ok(())
//! # }
//! ```

mod closing;
mod graceful;
mod layers;
mod readiness;
#[cfg(feature = "signal")]
mod signals;
mod stop;

pub use closing::{Closing, ClosingFuture};
pub use graceful::{Graceful, ServeError, StopAccepting, Stopped};
pub use layers::{ServerLayers, grpc, http};
pub use readiness::{MAX_CHECKS, Misconfigured, Readiness, ReadinessBuilder};
#[cfg(feature = "signal")]
pub use signals::termination;
pub use stop::{StopBuilder, StopPolicy};

#[cfg(test)]
mod tests;
