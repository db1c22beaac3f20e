//! Bounds the making of a connection: name look-up, TCP and TLS together.
//!
//! It stands around a connector, inside the client: hyper-util's `Service<Uri>`, or reqwest's, through
//! `ClientBuilder::connector_layer`. A connection that is not there in time was never used, so the request may be sent
//! again whatever its method; the rejection says so.
//!
//! Its future is `Unpin` where the connector's is, as hyper-util asks.
//!
//! # States
//!
//! - *connecting*: a timer exists only once the connector was pending;
//! - *over*: the limit was reached; the connector's future has been dropped.
//!
//! # When not
//!
//! It does not bound the wait for a pooled connection: [`crate::attempt_timeout`] does.
//!
//! ```
//! use mamparo::connect_timeout::ConnectTimeoutLayer;
//! use mamparo_core::Rejection;
//! use std::time::Duration;
//! use tower::{ServiceBuilder, ServiceExt};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), mamparo_core::InvalidSetting> {
//! let connector = ServiceBuilder::new()
//!     .layer(ConnectTimeoutLayer::new(Duration::from_millis(300))?.dependency("catalog"))
//!     .service_fn(async |_: http::Uri| std::future::pending::<Result<(), std::io::Error>>().await);
//! let error = connector.oneshot(http::Uri::from_static("http://catalog/")).await.unwrap_err();
//! assert_eq!(error.to_string(), "catalog: connect timed out: no connection within 300ms");
//! assert!(!Rejection::of(&*error).unwrap().sent());
//! # Ok(())
//! # }
//! ```

mod error;
mod future;
mod layer;
mod service;

pub use future::ConnectTimeoutFuture;
pub use layer::{ConnectTimeoutLayer, DEFAULT_CONNECT_TIMEOUT};
pub use service::ConnectTimeout;

#[cfg(test)]
mod tests;
