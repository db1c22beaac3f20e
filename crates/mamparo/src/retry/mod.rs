//! Sends a failed request again: the one owner of an operation's resends.
//!
//! An attempt's result is judged once, by the protocol's classifier. A failure is sent again when all of this
//! holds; otherwise the caller gets the last real response or error, marked with its [`Ending`]:
//!
//! - the verdict allows it: proof that the request was never processed, or a request that is idempotent by its
//!   method or its key. An unsafe request with an unknown outcome is not sent twice, and is marked *indeterminate*.
//!   What failed further in for a dependency of another name proves nothing, so name them;
//! - no retry around this one owns the operation's resends ([`Nested`]), and the peer does not forbid it;
//! - attempts are left: `max_attempts` counts the original;
//! - the wait, which is never shorter than the server asked for, and another attempt fit before the deadline;
//! - the body is still whole (see [`crate::replay`]);
//! - the dependency's [budget](mamparo_core::Budget) pays for it.
//!
//! # States
//!
//! - *sending*: an attempt is under way;
//! - *waiting*: the failed response was dropped, the next request is made, a token is reserved; no ready slot of
//!   the inner service is held;
//! - *readying*: the wait is over, the inner service is polled until it can take the next attempt.
//!
//! # When not
//!
//! Don't stack it twice around one dependency, nor around a client that retries by itself: three owners of four
//! attempts each are 64 requests.
//!
//! ```
//! use mamparo::retry::{RetryLayer, RetryPolicy};
//! use mamparo_core::{CallContext, Plain};
//! use tower::{ServiceBuilder, ServiceExt};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), mamparo_core::BoxError> {
//! let policy = RetryPolicy::builder().max_attempts(3).build()?;
//! let service = ServiceBuilder::new()
//!     .layer(RetryLayer::new(policy, Plain::idempotent()))
//!     .service_fn(async |question: u32| match CallContext::current().attempt() {
//!         1 | 2 => Err("not yet"),
//!         _ => Ok(question + 1),
//!     });
//! # tokio::time::pause();
//! assert_eq!(service.oneshot(41).await?, 42);
//! # Ok(())
//! # }
//! ```

mod config;
mod error;
mod future;
mod layer;
mod operation;
mod resending;
mod service;
mod state;

pub use config::{RetryBuilder, RetryPolicy};
pub use future::RetryFuture;
pub use layer::RetryLayer;
pub use mamparo_core::{Answer, Ending, Nested, RetryError};
pub(crate) use service::Calls;
pub use service::Retry;

#[cfg(test)]
mod tests;
