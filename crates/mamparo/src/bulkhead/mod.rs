//! Bounds how many calls to a dependency run at once, so that a slow one can't take every thread, socket and byte.
//!
//! A call takes a *place*, and gives it back when its answer's body has ended or is dropped. When no place is free it
//! waits in a short line, first come first served: up to 64 calls for up to 100 ms, and never longer than makes sense
//! before the operation's deadline. Who finds the line full, or has waited too long, is refused; nothing was sent. Newcomers
//! never overtake those who wait, and of a full line it is the newest call that is refused, never one that waits already.
//!
//! # States of a call
//!
//! - *queued*: it holds a place in the line, and nothing of the inner service: no ready slot, no place in its queue;
//! - *entered*: it holds one of the places. If the inner service was not ready, its future makes it so;
//! - *refused*: the line was full, or its time was up;
//! - *over*: the place is back, whether the call was answered, cancelled, cut or panicked.
//!
//! # Which place is whose
//!
//! Everybody's, unless [`Partitions`] give tenants shares: what is guaranteed to a tenant stays free for it, whatever
//! others do, and nobody gets more than its burst. A [`BulkheadHandle`] reads the bulkhead and resizes it while it works;
//! an [`AdaptiveLimit`] resizes it by itself (see [`adaptive`]).
//!
//! # When not
//!
//! Where the caller balances by readiness, use [`BulkheadBuilder::back_pressure`], which waits in `poll_ready` as tower's
//! own limit does. For calls a second use a rate limit: this one counts calls at once.
//!
//! ```
//! use mamparo::bulkhead::{BulkheadLayer, BulkheadPolicy};
//! use mamparo_core::{Plain, Rejection};
//! use tower::{Layer, Service, ServiceExt};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), mamparo_core::BoxError> {
//! let policy = BulkheadPolicy::builder().limit(1).max_waiting(0).build()?;
//! let layer = BulkheadLayer::new(policy, Plain::not_idempotent()).dependency("catalog");
//! let service = layer.layer(tower::service_fn(async |question: u32| {
//!     tokio::task::yield_now().await;
//!     Ok::<_, std::io::Error>(question + 1)
//! }));
//! let first = service.clone().oneshot(41);
//! let second = service.oneshot(0);
//! let (first, second) = tokio::join!(first, second);
//! assert_eq!(first?, 42);
//! let error = second.unwrap_err();
//! assert!(Rejection::of(&*error).is_some_and(Rejection::is_bulkhead_full));
//! assert_eq!(error.to_string(), "catalog: bulkhead is full: not sent");
//! assert_eq!(layer.handle().in_flight(), 0);
//! # Ok(())
//! # }
//! ```

pub mod adaptive;
mod config;
mod error;
mod future;
mod handle;
mod layer;
mod partition;
mod permit;
mod places;
mod service;
mod state;
mod wait;

pub use adaptive::{AdaptiveLimit, Aimd, Gradient2, LimitAlgorithm, Vegas, Window};
pub use config::{BulkheadBuilder, BulkheadPolicy, Hold};
pub use future::BulkheadFuture;
pub use handle::BulkheadHandle;
pub use layer::BulkheadLayer;
pub use partition::{
    ByContext, ByRequest, MOST_PARTITIONS, Partitions, PartitionsBuilder, Share, TenantOf,
};
pub use permit::Permit;
pub use service::Bulkhead;
pub use state::MOST_PLACES;

#[cfg(test)]
mod tests;
