//! Resilience for Rust services, as tower layers.
