//! What is gRPC's own, and no layer: the service config, and what it says of each method.
//!
//! A [`ServiceConfig`] says per method, per service and for all others how often and when a failed request is sent again, or
//! whether it is hedged; how long a call may take; and when too many failures stop all of that (gRFC A6). It is built in
//! code, or read from the JSON that gRPC's other implementations read
//! (`ServiceConfig::from_json`, with the feature `service-config`).
//!
//! | what it says | who obeys |
//! |---|---|
//! | `retryPolicy` | [`RetryLayer`](crate::retry::RetryLayer) |
//! | `hedgingPolicy` | [`HedgeLayer`](crate::hedge::HedgeLayer) |
//! | `timeout` | both, for their attempts; a [`DeadlineLayer`](crate::deadline::DeadlineLayer) for the whole call, by its [`HttpWire`] |
//! | `retryThrottling` | both |
//!
//! A method is retried or hedged, never both: each of the two layers sends what the other one owns once. A
//! [`Stack`](crate::stack::Stack) has both, and all of the above.
//!
//! [`HttpWire`]: crate::wire::HttpWire
//!
//! ```
//! use mamparo::grpc::{MethodConfig, RetryPlan, ServiceConfig};
//! use mamparo_core::Backoff;
//! use mamparo_core::grpc::Codes;
//! use std::time::Duration;
//!
//! let backoff = Backoff::grpc(Duration::from_millis(100), Duration::from_secs(1), 2.0)?;
//! let twice = RetryPlan::new(2, backoff, Codes::UNAVAILABLE)?;
//! let config = ServiceConfig::builder()
//!     .service("shop.Catalog", MethodConfig::new().retried(twice))
//!     .method("shop.Catalog", "Reserve", MethodConfig::new().sent_once())
//!     .build()?;
//!
//! assert!(config.method("/shop.Catalog/Search").is_some());
//! assert!(config.method("/shop.Cart/Add").is_none());
//! # Ok::<(), mamparo_core::InvalidSetting>(())
//! ```

#[cfg(feature = "service-config")]
mod error;
#[cfg(feature = "service-config")]
mod fields;
#[cfg(feature = "service-config")]
mod json;
mod method;
mod service_config;

#[cfg(feature = "service-config")]
pub use error::ServiceConfigError;
pub(crate) use method::Owner;
pub use method::{HedgePlan, MAX_ATTEMPTS, MethodConfig, Resends, RetryPlan};
pub(crate) use service_config::MethodId;
pub use service_config::{MAX_NAMES, ServiceConfig, ServiceConfigBuilder};

#[cfg(test)]
pub(crate) mod tests;
