//! Stops calling a dependency that fails, finds out when it is back, and lets calls in again little by little.
//!
//! A call to a dependency that is down costs the caller its time and the dependency its recovery. After enough of them
//! failed, a breaker rejects the next at once, with the time to come back in
//! [`Rejection::retry_after`](mamparo_core::Rejection::retry_after).
//!
//! # States
//!
//! - *closed*: calls pass, and their ends are counted: a run of failures, a count of them in a [`Window`], too great a
//!   share of failures or of slow calls opens it. After it was open, a [`Ramp`] lets more and more calls pass;
//! - *open*: calls are rejected, for a wait that grows from opening to opening;
//! - *half-open*: the wait was over as a call came. A few calls pass as probes, each on a lease: it is given back when
//!   the probe is dropped or says nothing, and lost when the probe is too old, which is a success if its answer began
//!   well and still streams. Enough successes close the breaker, one failed or slow probe opens it again;
//! - *forced open* and *disabled*: an operator said so, and only an operator changes it ([`BreakerHandle`]).
//!
//! A result belongs to the state in which its call began: what comes after a change counts for nothing. A caller that
//! goes away says nothing either, but a call that is cut at its deadline failed. For what a verdict is to a breaker see
//! [`Reading`]; the end of an answer's body is what decides, the answer's head tells how slow a call was.
//!
//! # Where it stands
//!
//! Inside of the retry it sees attempts, which is the default of [`crate::stack`]: what the dependency suffers counts at
//! once, and a rejection is not sent again. Outside of it it sees operations: a failure that a resend mends is none. Two
//! of them may stand at both places.
//!
//! # When not
//!
//! It bounds no concurrency: calls that are slow without failing still pile up. Between many replicas of which one is
//! bad, one breaker for all of them does harm: let the load balancer eject that one, or key the breaker.
//!
//! ```
//! use mamparo::breaker::{BreakerLayer, BreakerPolicy};
//! use mamparo_core::{Plain, Rejection};
//! use tower::{ServiceBuilder, ServiceExt};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), mamparo_core::InvalidSetting> {
//! let policy = BreakerPolicy::builder().consecutive_failures(3).build()?;
//! let down = ServiceBuilder::new()
//!     .layer(BreakerLayer::new(policy, Plain::idempotent()).dependency("catalog"))
//!     .service_fn(async |_: u32| Err::<u32, _>("down"));
//! for _ in 0..3 {
//!     assert_eq!(down.clone().oneshot(1).await.unwrap_err().to_string(), "down");
//! }
//! let error = down.oneshot(1).await.unwrap_err();
//! let rejection = Rejection::of(&*error).unwrap();
//! assert!(rejection.is_breaker_open() && !rejection.sent());
//! assert!(rejection.retry_after().is_some());
//! # Ok(())
//! # }
//! ```

mod circuit;
mod circuits;
mod config;
mod error;
mod future;
mod guard;
mod handle;
mod journal;
mod keying;
mod keys;
mod layer;
mod phase;
mod ramp;
mod reading;
mod service;
mod state;
mod streak;
mod ticket;
mod window;
mod words;

pub use config::{BreakerBuilder, BreakerPolicy};
pub use future::BreakerFuture;
pub use guard::BreakerGuard;
pub use handle::{BreakerHandle, Snapshot};
pub use journal::Transitions;
pub use keying::{By, ByAuthority, Host, KeyOf, One};
pub use layer::BreakerLayer;
pub use mamparo_core::breaker::{BreakerCause, BreakerState, Rates, Transition};
pub use ramp::Ramp;
pub use reading::{Read, Reading};
pub use service::Breaker;
pub use window::Window;

#[cfg(test)]
mod tests;
