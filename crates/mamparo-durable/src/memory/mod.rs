//! A backend in memory: what the traits mean, as simply as it can be said.
//!
//! It forgets everything with its process, so it serves tests and examples. What a real backend does differently must not
//! be seen through the traits; the conformance suite runs over this one too.
//!
//! ```
//! use mamparo_durable::memory::Memory;
//! use mamparo_core::clock::SystemClock;
//!
//! let backend = Memory::new(SystemClock).backend();
//! assert!(backend.outbox().is_some());
//! ```

mod limits;
mod outbox;
mod queue;
mod scheduler;
mod shared;
mod store;
mod world;

pub use shared::Memory;
