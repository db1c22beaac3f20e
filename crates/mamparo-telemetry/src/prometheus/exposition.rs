//! A provider whose metrics can be read.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mamparo_core::BoxError;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::data::ResourceMetrics;
use opentelemetry_sdk::metrics::exporter::PushMetricExporter;
use opentelemetry_sdk::metrics::{PeriodicReader, SdkMeterProvider, Temporality};

use super::page::page;

/// What the page is, to whoever scrapes it.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Between two collections that nobody asks for; what is scraped is collected then.
const SELDOM: Duration = Duration::from_secs(3_600);

/// A meter provider, and the page with what was written through it. Clones are of the same.
#[derive(Clone, Debug)]
pub struct Exposition {
    provider: SdkMeterProvider,
    last: Last,
}

impl Exposition {
    /// Makes a provider.
    #[must_use]
    pub fn new() -> Self {
        let last = Last::default();
        let reader = PeriodicReader::builder(last.clone()).with_interval(SELDOM);
        Self {
            provider: SdkMeterProvider::builder()
                .with_reader(reader.build())
                .build(),
            last,
        }
    }

    /// Returns the provider, for whatever writes metrics.
    #[must_use]
    pub const fn provider(&self) -> &SdkMeterProvider {
        &self.provider
    }

    /// Collects all, and writes it in Prometheus' text format 0.0.4, with names as OpenTelemetry translates them.
    ///
    /// It blocks while that which is read at this moment is read.
    ///
    /// # Errors
    ///
    /// The SDK's, after a shutdown of the provider.
    pub fn page(&self) -> Result<String, BoxError> {
        self.provider.force_flush()?;
        let page = self.last.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(page.clone())
    }
}

impl Default for Exposition {
    fn default() -> Self {
        Self::new()
    }
}

/// The page of the last collection.
#[derive(Clone, Debug, Default)]
struct Last(Arc<Mutex<String>>);

impl PushMetricExporter for Last {
    async fn export(&self, metrics: &ResourceMetrics) -> OTelSdkResult {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = page(metrics);
        Ok(())
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }

    fn temporality(&self) -> Temporality {
        Temporality::Cumulative
    }
}
