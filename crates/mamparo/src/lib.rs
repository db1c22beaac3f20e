//! Resilience for Rust services, as tower layers.

pub mod attempt_timeout;
mod bound;
pub mod deadline;
pub mod replay;
pub mod retry;
pub mod wire;
