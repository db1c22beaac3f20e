//! Metrics as Prometheus reads them, for a program that is scraped.
//!
//! [`Exposition`] has a meter provider, and a page with all that was written through it. Serve the page under `/metrics`, with the
//! content type [`CONTENT_TYPE`]. Programs that export by OTLP need none of it.
//!
//! ```
//! use mamparo_telemetry::Metrics;
//! use mamparo_telemetry::prometheus::Exposition;
//!
//! let exposition = Exposition::new();
//! let metrics = Metrics::of(exposition.provider());
//! # drop(metrics);
//! // Collecting may block: in an async program, on a thread for that.
//! let page = exposition.page()?;
//! # assert_eq!(page, "");
//! # Ok::<(), mamparo_core::BoxError>(())
//! ```

mod exposition;
mod page;

pub use exposition::{CONTENT_TYPE, Exposition};

#[cfg(test)]
mod tests;
