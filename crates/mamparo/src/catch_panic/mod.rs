//! Turns a handler's panic into an error: its caller is answered, and other requests of its connection go on.
//!
//! Without it, a panic unwinds through the connection's task, and every request that shares the connection breaks off. The
//! error is a [`Panicked`]; [`RejectionLayer`](crate::rejection), which must stand further out, answers it with 500 (gRPC:
//! `INTERNAL`), tells nothing of its text, and reports it. In a body whose head has been sent, a panic breaks off that one
//! stream; gRPC gets its status in the trailers.
//!
//! It stands right around the handler, so that layers further out see an error and give back what they hold; they do so too
//! when a panic unwinds through them.
//!
//! # States
//!
//! - *calling*: the handler works;
//! - *over*: it has answered, or panicked and was dropped.
//!
//! # When not
//!
//! A program that is built with `panic = "abort"` ends at the panic, whatever stands around it.
//!
//! ```
//! use http::{Request, Response};
//! use mamparo::catch_panic::CatchPanicLayer;
//! use mamparo::rejection::RejectionLayer;
//! use std::convert::Infallible;
//! use tower::{ServiceBuilder, ServiceExt};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Infallible> {
//! # std::panic::set_hook(Box::new(|_| {}));
//! let server = ServiceBuilder::new()
//!     .layer(RejectionLayer::default())
//!     .layer(CatchPanicLayer::new())
//!     .service_fn(async |request: Request<String>| {
//!         assert!(!request.body().is_empty(), "the password is 1234");
//!         Ok::<_, Infallible>(Response::new(String::new()))
//!     });
//! let response = server.oneshot(Request::new(String::new())).await?;
//! assert_eq!(response.status(), 500);
//! # Ok(())
//! # }
//! ```

mod body;
mod error;
mod future;
mod layer;
mod service;

pub use body::CatchPanicBody;
pub use error::Panicked;
pub use future::CatchPanicFuture;
pub use layer::CatchPanicLayer;
pub use service::CatchPanic;

#[cfg(test)]
mod tests;
