//! Resilience for Rust services, as tower layers.

pub mod deadline;
