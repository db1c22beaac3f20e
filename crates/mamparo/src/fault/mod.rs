//! Faults on purpose: answers that are late, wrong, cut short or missing, to see what a stack makes of them.
//!
//! A [`FaultLayer`] stands where the dependency would: innermost in a client's stack, or outermost on a server that plays
//! the dependency. It takes a [`FaultPlan`], a list of [`Fault`]s. Each hits a share of the calls, of all of them or of those
//! whose request a predicate picks:
//!
//! | fault | what the caller sees |
//! |---|---|
//! | [`Fault::latency`], [`Fault::latency_between`] | the answer comes, later by so much: what the call does has been done by then |
//! | [`Fault::error`] | this error; the inner service is not called |
//! | [`Fault::response`] | this response; the inner service is not called |
//! | [`Fault::drop_body`] | HTTP: the answer's body breaks after so many bytes |
//! | [`Fault::truncate_body`] | HTTP: the answer's body ends after so many bytes, as if that were all |
//!
//! Latencies add up. Of the others, the first in the list that hits is the one that happens, late if a latency hit too.
//!
//! # Explicitly
//!
//! The module exists only with the Cargo feature `fault`, so that a program that was not built with it can't be made to fail
//! by a setting. Nothing else changes with the feature. Every fault is reported to the layer's observer, as
//! [`What::FaultInjected`](mamparo_core::What), and counted by the [`FaultHandle`], which turns the faults off and on while
//! the program runs, and replaces their plan.
//!
//! # Again
//!
//! What happens to the *n*th call depends on the plan's seed and on *n* alone: with one seed, the same calls in the same
//! order meet the same faults. A plan without a seed draws one, which [`FaultPlan::seed`] tells.
//!
//! # States
//!
//! - *called*: the inner service works; without a fault its answer is passed on;
//! - *answered*: the answer is made up, or was received and is to be late;
//! - *late*: it waits for its time.
//!
//! # When not
//!
//! Where bytes should be lost, slowed or reset below HTTP, put a proxy between: a layer can't break a connection. Errors
//! are the caller's own values, judged as if the dependency had sent them; they are no rejections.
//!
//! ```
//! use mamparo::fault::{Fault, FaultLayer, FaultPlan};
//! use mamparo_core::{BoxError, clock};
//! use std::io;
//! use std::time::Duration;
//! use tower::{ServiceBuilder, ServiceExt};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), BoxError> {
//! let plan = FaultPlan::new([
//!     Fault::latency(Duration::from_millis(300)).rate(0.5),
//!     Fault::error(|| io::Error::from(io::ErrorKind::ConnectionReset)).when(|&question| question > 9),
//! ])?;
//! let faults = FaultLayer::new(plan.with_seed(7));
//! let handle = faults.handle();
//! let service = ServiceBuilder::new()
//!     .layer(faults)
//!     .service_fn(async |question: u32| Ok::<_, BoxError>(question * 2));
//!
//! assert!(service.clone().oneshot(10).await.is_err());
//! assert_eq!(service.clone().oneshot(1).await?, 2);
//! handle.turn_off();
//! assert_eq!(service.oneshot(10).await?, 20);
//! # Ok(())
//! # }
//! ```

mod answer;
mod body;
mod config;
mod future;
mod handle;
mod layer;
mod service;
mod state;

pub use answer::{HttpAnswer, Protocol, Spoil, Whole};
pub use body::{BodyFault, FaultBody};
pub use config::{Fault, FaultPlan, MAX_FAULTS};
pub use future::FaultFuture;
pub use handle::FaultHandle;
pub use layer::FaultLayer;
pub use service::Faulty;

#[cfg(test)]
mod tests;
