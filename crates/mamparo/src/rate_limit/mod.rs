//! Lets calls pass at a rate, with a burst after a pause; the others wait for their turn or are rejected.
//!
//! The limit is the generic cell rate algorithm: in *any* stretch of time there passes at most the rate's share of it
//! plus one burst, and what was not used earlier comes back as burst and no more. There are no windows, so there
//! is no edge between two of them at which twice as much passes.
//!
//! By default a call over the limit is rejected at once, and the rejection says when it would pass
//! ([`Rejection::retry_after`]). With a [`max_wait`](RateLimitBuilder::max_wait) it waits for its turn, first come, first
//! served; a call whose turn would come too late for that or for its deadline is rejected without waiting. A
//! waiting call has taken nothing: when it goes away, the next one moves up, and when it is polled no more, those behind it
//! overtake it in the end. One that passed, but whose inner service was
//! not ready before it went away, gives back what it took, as far as time has not done so already.
//!
//! It stands inside of a retry, so that each attempt is charged.
//!
//! # States
//!
//! - *called*: it passed; it may still wait for an inner service that is not ready;
//! - *waiting*: its turn has not come yet; it holds no place of the inner service;
//! - *refused*: its rejection is told at the first poll.
//!
//! # Who pays
//!
//! All calls together, unless [`per_tenant`](RateLimitLayer::per_tenant) or [`per_key`](RateLimitLayer::per_key) gives
//! each its own limit, for a bounded number of keys: see [`max_keys`](RateLimitBuilder::max_keys). A call costs 1, unless
//! [`cost`](RateLimitLayer::cost) says otherwise.
//!
//! # What threads share
//!
//! One word, on a cache line of its own: a call that passes changes it, and two threads that call at once take turns at
//! it. That is the price of a limit that is exact. What each call only reads lies elsewhere.
//!
//! # What is told
//!
//! Around a server, [`RateLimitLayer::server`] tells callers what is left, on every answer and refusal, in the fields
//! `RateLimit` and `RateLimit-Policy` of draft-ietf-httpapi-ratelimit-headers-10; in `X-RateLimit-*` too, if asked to.
//!
//! # When not
//!
//! It bounds how often a dependency is called, not how many calls are under way: a slow dependency needs a bulkhead. It
//! counts in one process, unless [`shared`](RateLimitLayer::shared) keeps it in a store for several.
//!
//! ```
//! use mamparo::rate_limit::{RateLimitLayer, RateLimitPolicy};
//! use mamparo_core::Rejection;
//! use std::convert::Infallible;
//! use std::time::Duration;
//! use tower::{Service, ServiceBuilder, ServiceExt};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), mamparo_core::BoxError> {
//! let policy = RateLimitPolicy::per(Duration::from_secs(1), 2).build()?;
//! let mut mail = ServiceBuilder::new()
//!     .layer(RateLimitLayer::new(policy).dependency("mail"))
//!     .service_fn(async |letter: u32| Ok::<_, Infallible>(letter));
//! for letter in [1, 2] {
//!     mail.ready().await?.call(letter).await?;
//! }
//! let error = mail.ready().await?.call(3).await.unwrap_err();
//! assert_eq!(error.to_string(), "mail: rate limit is used up: not sent");
//! assert_eq!(Rejection::of(&*error).unwrap().retry_after(), Some(Duration::from_millis(500)));
//! # Ok(())
//! # }
//! ```
//!
//! [`Rejection::retry_after`]: mamparo_core::Rejection::retry_after

mod bucket;
mod charge;
mod common;
mod config;
mod error;
mod future;
mod handle;
mod layer;
mod limit;
mod meter;
mod obey;
mod service;
mod shared;
mod state;
mod waiting;

pub use charge::{Charge, Costed, OneLimit, PerKey, PerTenant};
pub use config::{RateLimitBuilder, RateLimitPolicy};
pub use future::RateLimitFuture;
pub use handle::RateLimitHandle;
pub use layer::RateLimitLayer;
pub use obey::{GrpcLimits, HttpLimits, NoLimits, ReadsLimit, ServerLimits};
pub use service::RateLimit;
pub use shared::{Ask, Granted, LimitStore, Replicas, Taking};

#[cfg(test)]
mod tests;
