//! A server's deadline: takes the caller's over, refuses what comes too late, and stops the handler when time is up.
//!
//! The caller's deadline is read from the request's headers, clamped to the server's maximum, and bounds the handler
//! and its response's body. Both run in a fresh [`CallContext`](mamparo_core::CallContext) that carries it: a client
//! call made in the handler begins an operation of its own, and inherits the deadline with no code. So does a task
//! that is spawned with [`carry`](mamparo_core::carry); [`detach`](mamparo_core::detach) leaves it behind, for work
//! that outlives the request.
//!
//! - A caller that sends no deadline gets the server's own limit.
//! - The headers that were read are taken off the request: a handler that hands its headers on would otherwise send a
//!   value from which no time has been deducted. The handler reads what remains from its context.
//! - An absolute deadline that has passed is believed only so far, see [`Skew`](crate::wire::codec::Skew).
//! - A malformed header is ignored and reported, or refused where the policy says so.
//! - A second such layer further in, around one route, can only shorten the deadline.
//!
//! # States
//!
//! - *refused*: nothing remained on arrival, or a header was malformed in strict mode; the handler is not called;
//! - *running*: the handler works; a timer exists only once it was pending;
//! - *over*: the deadline passed; the handler's future has been dropped, and what it waited for.
//!
//! A handler that blocks cannot be stopped. Its answer is delivered all the same, and how late it came is reported.
//! A body that is cut breaks off: its status has been sent. gRPC's is in the trailers, and
//! [`RejectionLayer`](crate::rejection) sends it there.
//!
//! # When not
//!
//! Around a connection that is meant to stay, such as a WebSocket or an endless stream of events, unless the maximum
//! is as long. On a client use [`crate::deadline`].
//!
//! ```
//! use http::{Request, Response};
//! use http_body_util::Full;
//! use mamparo::server_deadline::{ServerDeadlineLayer, ServerDeadlinePolicy};
//! use mamparo_core::{CallContext, Rejection, clock};
//! use std::convert::Infallible;
//! use std::time::Duration;
//! use tower::{ServiceBuilder, ServiceExt};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), mamparo_core::BoxError> {
//! let server = ServiceBuilder::new()
//!     .layer(ServerDeadlineLayer::http(ServerDeadlinePolicy::default()))
//!     .service_fn(async |_: Request<Full<&[u8]>>| {
//!         let deadline = CallContext::current().deadline().unwrap();
//!         assert!(deadline.remaining(clock::now()) <= Duration::from_millis(200));
//!         tokio::time::sleep(Duration::from_secs(1)).await;
//!         Ok::<_, Infallible>(Response::new(Full::new(&b"too late"[..])))
//!     });
//! let request = Request::get("/").header("x-request-timeout-ms", "200").body(Full::default())?;
//! let error = server.oneshot(request).await.unwrap_err();
//! assert!(Rejection::of(&*error).unwrap().is_deadline_exceeded());
//! # Ok(())
//! # }
//! ```

mod config;
mod error;
mod future;
mod layer;
mod service;
mod state;

pub use config::{ServerDeadlineBuilder, ServerDeadlinePolicy};
pub use future::ServerDeadlineFuture;
pub use layer::ServerDeadlineLayer;
pub use service::ServerDeadline;

#[cfg(test)]
mod tests;
