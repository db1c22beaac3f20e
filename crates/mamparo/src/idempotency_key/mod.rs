//! Gives each operation one idempotency key, the same on all of its attempts.
//!
//! A request of a method that is not idempotent gets a key before anything can resend it, so that the server can
//! recognise a repetition, and the retry inside may send it again. The form is that of
//! draft-ietf-httpapi-idempotency-key-header-07: a structured field string (RFC 9651), here a version 7 UUID in quotes. A
//! key that the caller has set is never touched.
//!
//! The key is never logged whole: the call's context and the event carry a short hash.
//!
//! # When not
//!
//! Only for a dependency that honours keys. With one that ignores them, the retry would send an unsafe request twice.
//!
//! ```
//! use http::{Request, Response};
//! use mamparo::idempotency_key::{IdempotencyKeyLayer, KeyPolicy};
//! use tower::{ServiceBuilder, ServiceExt};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), mamparo_core::BoxError> {
//! let psp = ServiceBuilder::new()
//!     .layer(IdempotencyKeyLayer::new(KeyPolicy::default()).dependency("psp"))
//!     .service_fn(async |request: Request<()>| {
//!         Ok::<_, std::convert::Infallible>(Response::new(request.headers()["idempotency-key"].clone()))
//!     });
//! let key = psp.oneshot(Request::post("/charges").body(())?).await?.into_body();
//! assert_eq!((key.len(), &key.as_bytes()[..1]), (38, &b"\""[..]));
//! # Ok(())
//! # }
//! ```

mod config;
mod future;
mod layer;
mod service;
mod state;

pub use config::{KeyBuilder, KeyForm, KeyPolicy, MAX_METHODS};
pub use future::IdempotencyKeyFuture;
pub use layer::IdempotencyKeyLayer;
pub use service::IdempotencyKey;

#[cfg(test)]
mod tests;
