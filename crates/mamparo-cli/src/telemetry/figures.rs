//! What the metrics say, by dependency.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mamparo_telemetry::semconv::DEPENDENCY;
use opentelemetry::KeyValue;
use opentelemetry_otlp::MetricExporter;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::Temporality;
use opentelemetry_sdk::metrics::data::{AggregatedMetrics, MetricData, ResourceMetrics};
use opentelemetry_sdk::metrics::exporter::PushMetricExporter;

/// Counts by metric and dependency, whatever their other attributes are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Figures(BTreeMap<(String, String), u64>);

impl Figures {
    /// Returns what a counter says of a dependency, or how many values a histogram has.
    pub(crate) fn count(&self, metric: &str, dependency: &str) -> u64 {
        let key = (metric.to_owned(), dependency.to_owned());
        self.0.get(&key).copied().unwrap_or(0)
    }

    fn of(metrics: &ResourceMetrics) -> Self {
        let mut figures = Self::default();
        let metrics = metrics.scope_metrics().flat_map(|scope| scope.metrics());
        for metric in metrics {
            let mut add = |dependency: String, count: u64| {
                let key = (metric.name().to_owned(), dependency);
                *figures.0.entry(key).or_default() += count;
            };
            match metric.data() {
                AggregatedMetrics::U64(MetricData::Sum(sum)) => {
                    for point in sum.data_points() {
                        add(dependency(point.attributes()), point.value());
                    }
                }
                AggregatedMetrics::F64(MetricData::Histogram(histogram)) => {
                    for point in histogram.data_points() {
                        add(dependency(point.attributes()), point.count());
                    }
                }
                _ => {}
            }
        }
        figures
    }
}

fn dependency<'a>(mut attributes: impl Iterator<Item = &'a KeyValue>) -> String {
    let found = attributes.find(|attribute| attribute.key.as_str() == DEPENDENCY);
    found.map_or_else(String::new, |found| found.value.as_str().into_owned())
}

/// Keeps the figures of each collection, and hands it on to a collector.
#[derive(Debug)]
pub(super) struct Tap {
    pub(super) figures: Arc<Mutex<Figures>>,
    pub(super) collector: Option<MetricExporter>,
}

impl PushMetricExporter for Tap {
    async fn export(&self, metrics: &ResourceMetrics) -> OTelSdkResult {
        let figures = Figures::of(metrics);
        *self.figures.lock().unwrap_or_else(PoisonError::into_inner) = figures;
        match &self.collector {
            Some(collector) => collector.export(metrics).await,
            None => Ok(()),
        }
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
