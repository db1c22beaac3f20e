//! Sends a slow request a second time beside the first, and takes the better answer.
//!
//! A few requests of every service are slow for no reason of their own: a pause, a full queue, a lost packet. Sent again
//! after the time in which nearly all are answered, such a request is answered fast, for a few percent of extra load
//! ("The Tail at Scale", Dean and Barroso, CACM 2013; gRPC's hedging, proposal A6).
//!
//! - The delay is fixed, or a percentile of the successes of a window that slides; a failure, however fast, does not
//!   lower it, and an attempt that was given up counts as at least as slow as it had been.
//! - An attempt that fails brings the next one forward, or puts it off for as long as the server asks. What no attempt
//!   would do better, such as a 404, ends the operation.
//! - The first success wins, and the others are dropped in the same poll: their connections and permits are free, and
//!   they count as neither success nor failure. When all fail, the last real answer is returned, marked with its
//!   [`Ending`].
//! - Hedges are bounded: by a share of the operations, by the dependency's [budget](mamparo_core::Budget), which they
//!   share with retries, by the deadline, and by `max_attempts`, which counts the original.
//! - Only idempotent requests are hedged, by their method or by their key. Any other is sent again only after a failure
//!   that proves that it was never processed, such as a refused connection: one attempt after the other. A request that
//!   can't be hedged, or not any more, is sent as if there were no hedge, and an [event](mamparo_core::What::HedgeOff) says why.
//! - The server sees the attempt's number in [`ATTEMPT_HEADER`](crate::replay::ATTEMPT_HEADER); everything inside sees
//!   it in the [context](mamparo_core::CallContext).
//!
//! # States
//!
//! - *alone*: the first attempt is under way, and the delay runs; no ready slot of the inner service is held;
//! - *readying*: another attempt is paid for, and its own clone of the inner service is polled until it can take it;
//! - *side by side*: several attempts are under way, each polled with its own number;
//! - *waiting*: all have failed, and the server asked for a wait: its answer was dropped, the next request is made.
//!
//! # When not
//!
//! Not where slowness has one cause for all requests: a hedge then adds load where there is too much. Not around a
//! retry, nor inside one, for the same dependency: one layer owns its resends, see [`Nested`].
//!
//! ```
//! use mamparo::hedge::{Ending, HedgeLayer, HedgePolicy};
//! use mamparo_core::{BoxError, CallContext, Plain};
//! use std::time::Duration;
//! use tower::{ServiceBuilder, ServiceExt};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), BoxError> {
//! let policy = HedgePolicy::builder().fixed(Duration::from_millis(50)).build()?;
//! let service = ServiceBuilder::new()
//!     .layer(HedgeLayer::new(policy, Plain::idempotent()))
//!     .service_fn(async |question: u32| {
//!         // One server hangs, and the other one answers.
//!         if CallContext::current().attempt() == 1 {
//!             std::future::pending::<()>().await;
//!         }
//!         Ok::<_, BoxError>(question + 1)
//!     });
//! # tokio::time::pause();
//! assert_eq!(service.oneshot(41).await?, 42);
//! # Ok(())
//! # }
//! ```

mod again;
mod arm;
mod config;
mod error;
mod future;
mod histogram;
mod latency;
mod layer;
mod operation;
mod outcome;
mod service;
mod state;

pub use config::{HedgeBuilder, HedgePolicy};
pub use future::HedgeFuture;
pub use layer::HedgeLayer;
pub use mamparo_core::{Answer, Ending, Nested, RetryError};
pub(crate) use service::Calls;
pub use service::Hedge;

#[cfg(test)]
mod tests;
