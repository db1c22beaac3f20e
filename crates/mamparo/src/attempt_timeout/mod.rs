//! Bounds one attempt, and tells the next service what remains.
//!
//! The limit in effect is the smaller of the attempt's own timeout and what remains of the operation's deadline, less
//! the reserve. It covers everything until the response's head: waiting for readiness and for a pooled connection,
//! connecting, writing the request. After the head, the body may take until the deadline (less the reserve), and may
//! stall for no longer than the idle timeout.
//!
//! Each attempt writes what remains of the deadline into its request, in place of any value that the request carries:
//! an attempt that starts later sends less.
//!
//! # States
//!
//! - *refused*: nothing remained when the attempt was due; nothing is sent;
//! - *running*: the inner service works; a timer exists only once it was pending;
//! - *over*: the limit was reached; the inner future has been dropped.
//!
//! An attempt cut by its own timeout may be sent again; one cut by the deadline may not: the two are different
//! rejections.
//!
//! # When not
//!
//! It does not bound an operation: without [`crate::deadline`] outside of the retry, attempts add up.
//!
//! ```
//! use mamparo::attempt_timeout::{AttemptPolicy, AttemptTimeoutLayer};
//! use mamparo_core::Rejection;
//! use std::time::Duration;
//! use tower::{ServiceBuilder, ServiceExt};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), mamparo_core::InvalidSetting> {
//! let policy = AttemptPolicy::builder().timeout(Duration::from_millis(500)).build()?;
//! let slow = ServiceBuilder::new()
//!     .layer(AttemptTimeoutLayer::new(policy).dependency("catalog"))
//!     .service_fn(|question: u32| async move {
//!         tokio::time::sleep(Duration::from_secs(60)).await;
//!         Ok::<_, std::convert::Infallible>(question)
//!     });
//! let error = slow.oneshot(1).await.unwrap_err();
//! assert_eq!(error.to_string(), "catalog: attempt timed out: no answer within 500ms");
//! assert!(Rejection::of(&*error).unwrap().is_attempt_timeout());
//! # Ok(())
//! # }
//! ```

mod config;
mod error;
mod future;
mod layer;
mod service;
mod state;

pub use config::{AttemptBuilder, AttemptPolicy};
pub use future::AttemptTimeoutFuture;
pub use layer::AttemptTimeoutLayer;
pub use service::AttemptTimeout;

#[cfg(test)]
mod tests;
