//! A deadline that travels: bounds a whole operation, and tells the next service how much of it remains.
//!
//! The client's layer takes the smallest of its own limit, the caller's deadline (from the
//! [`CallContext`](mamparo_core::CallContext)) and a limit that the request already carries, which it takes off.
//! Everything inside sees the result: queues, waits, attempts, and the response's body. Each attempt writes what then
//! remains into its request; see [`crate::attempt_timeout`].
//!
//! # States
//!
//! - *refused*: nothing remained when the call was made; nothing is sent;
//! - *running*: the inner service works; a timer exists only once it was pending;
//! - *over*: the deadline passed; the inner future has been dropped, and what it did with it.
//!
//! # When not
//!
//! For one attempt or one phase use a timeout: [`crate::attempt_timeout`], [`crate::connect_timeout`]. On a server
//! use [`crate::server_deadline`].
//!
//! ```
//! use mamparo::deadline::{DeadlineLayer, DeadlinePolicy};
//! use mamparo_core::{CallContext, Rejection};
//! use std::time::Duration;
//! use tower::{ServiceBuilder, ServiceExt};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), mamparo_core::InvalidSetting> {
//! let policy = DeadlinePolicy::within(Duration::from_millis(200))?;
//! let slow = ServiceBuilder::new()
//!     .layer(DeadlineLayer::new(policy).dependency("catalog"))
//!     .service_fn(|question: u32| async move {
//!         tokio::time::sleep(Duration::from_secs(60)).await;
//!         Ok::<_, std::convert::Infallible>(question)
//!     });
//! let error = slow.oneshot(1).await.unwrap_err();
//! assert!(Rejection::of(&*error).unwrap().is_deadline_exceeded());
//! # Ok(())
//! # }
//! ```

mod config;
mod error;
mod future;
mod layer;
mod service;

pub use config::DeadlinePolicy;
pub use future::DeadlineFuture;
pub use layer::DeadlineLayer;
pub use service::DeadlineService;

#[cfg(test)]
mod tests;
