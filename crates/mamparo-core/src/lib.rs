//! The words that every part of mamparo shares: deadline, verdict, backoff, budget, event, rejection.
//!
//! Nothing here does I/O. Layers, telemetry and the durable engine depend on this crate and never on each
//! other; what two of them share lives here.

pub mod clock;
mod setting;

pub use setting::InvalidSetting;

/// An error of any kind, as tower's own layers return it.
pub type BoxError = Box<dyn std::error::Error + Send + Sync + 'static>;
