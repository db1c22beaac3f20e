//! Resilience for Rust services, as tower layers.

pub mod attempt_timeout;
mod bound;
#[cfg(any(feature = "hyper", feature = "reqwest"))]
pub mod client;
pub mod connect_timeout;
pub mod deadline;
pub mod idempotency_key;
pub mod rejection;
pub mod replay;
pub mod retry;
pub mod server_deadline;
pub mod stack;
pub mod wire;
