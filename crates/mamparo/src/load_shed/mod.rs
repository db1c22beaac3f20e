//! Refuses calls while the load is too high, in place of letting them wait: of what would come too late, nothing is done.
//!
//! A policy has one rule or several, and a call is shed as soon as one says so:
//!
//! - [`max_in_flight`](LoadShedBuilder::max_in_flight): too many calls are under way;
//! - [`queue_time`](LoadShedBuilder::queue_time): calls have waited too long for a while, so that the queue drains no
//!   more (after CoDel, RFC 8289);
//! - [`throttle`](LoadShedBuilder::throttle): the dependency accepts too few (the adaptive throttling of a client, Site
//!   Reliability Engineering, chapter 21);
//! - [`refuse_when_not_ready`](LoadShedBuilder::refuse_when_not_ready): the inner service is not ready, as tower's `LoadShed`.
//!
//! Of requests that are not worth the same ([`Priority`]), the lower are shed first: each priority may use its
//! [share](LoadShedBuilder::shares) of what a rule allows. What a request claims to be worth is believed only so far:
//! see [`priority_header`](LoadShedLayer::priority_header).
//!
//! # Where it stands
//!
//! On a server right inside of its deadline, so that what is refused costs nothing. On a client outside of the retry, for two
//! reasons: a call that is shed is then not sent again, and the time since the operation began is the call's
//! wait and not that of earlier attempts. For the queue's time to say something, the queue must be between the stamp of arrival
//! and the inner service: tower's `Buffer` and `ConcurrencyLimit` are, a transport that is always ready has none.
//!
//! # States
//!
//! - *called*: it passed; its place is held until the answer's body is over;
//! - *waiting*: it waits for the inner service; how long, decides whether it is shed;
//! - *refused*: its rejection is told at the first poll.
//!
//! # What threads share
//!
//! `max_in_flight` counts each call in and out on one word: a limit that is exact is shared. `queue_time` only reads, but
//! once an interval and for the shortest waits. `throttle` reads one word as a call begins and writes two as it ends.
//!
//! # When not
//!
//! A bulkhead also limits calls at once, and lets some wait a little; with one, `max_in_flight` is not needed.
//!
//! ```
//! use mamparo::load_shed::{LoadShedLayer, LoadShedPolicy, Priority};
//! use mamparo_core::{Plain, Rejection};
//! use std::convert::Infallible;
//! use tower::{Layer, Service, ServiceExt, service_fn};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), mamparo_core::BoxError> {
//! let policy = LoadShedPolicy::builder().max_in_flight(2).build()?;
//! let layer = LoadShedLayer::new(policy, Plain::idempotent())
//!     .priority(|job: &&str| if *job == "batch" { Priority::Sheddable } else { Priority::Critical });
//! let mut jobs = layer.layer(service_fn(async |job: &str| Ok::<_, Infallible>(job.len())));
//!
//! let running = jobs.ready().await?.call("payment"); // one of two places
//! let error = jobs.ready().await?.call("batch").await.unwrap_err(); // half of the places are for it
//! assert!(Rejection::of(&*error).unwrap().is_overloaded());
//! assert_eq!(jobs.ready().await?.call("payment").await?, 7);
//! assert_eq!(running.await?, 7);
//! # Ok(())
//! # }
//! ```

mod config;
mod error;
mod future;
mod guard;
mod layer;
mod load;
mod priority;
mod service;
mod state;
mod waiting;

pub use config::{LoadShedBuilder, LoadShedPolicy};
pub use future::LoadShedFuture;
pub use guard::ShedGuard;
pub use layer::LoadShedLayer;
pub use priority::{AllEqual, ArrivedAt, Assess, ByHeader, ByPriority, Priority};
pub use service::LoadShed;

#[cfg(test)]
mod tests;
