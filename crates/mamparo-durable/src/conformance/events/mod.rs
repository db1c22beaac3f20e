//! What [`events`](crate::events) promise, over a real database: puts, claims, the relay, the inbox and the watchdog.
//!
//! A backend's crate implements [`EventBackend`] for its tests, and gives an async function that makes a fresh one, and whatever must live
//! as long, to [`event_conformance!`](crate::event_conformance).

pub mod inbox;
pub mod relay;
pub mod store;
mod support;
pub mod watchdog;

pub use support::EventBackend;
