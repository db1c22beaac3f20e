//! The suite that every backend runs: what the traits promise, and every row of the failure table, over the real thing.
//!
//! A backend's crate gives an async function that makes a fresh, empty backend, and whatever must live as long:
//!
//! ```
//! use mamparo_core::clock::SystemClock;
//! use mamparo_durable::backend::Backend;
//! use mamparo_durable::conformance::REDELIVERY_LIMIT;
//! use mamparo_durable::memory::Memory;
//!
//! async fn fresh() -> (Backend, ()) {
//!     (Memory::new(SystemClock).redelivery_limit(REDELIVERY_LIMIT).backend(), ())
//! }
//!
//! mamparo_durable::conformance!(fresh);
//! # fn main() {}
//! ```
//!
//! The macro makes one `#[tokio::test]` a case, so the crate needs tokio with `macros` and `rt-multi-thread` in its tests. The
//! backend reads the real clock. Cases about an [`Outbox`](crate::backend::Outbox) pass where there is none; those about
//! handlers run with it and without.

pub mod events;
pub mod failures;
pub mod handlers;
pub mod limits;
mod macros;
mod mortal;
pub mod outbox;
mod play;
pub mod queries;
pub mod queue;
pub mod recovery;
pub mod scheduler;
pub mod store;
mod support;
pub mod traces;

pub use support::REDELIVERY_LIMIT;
