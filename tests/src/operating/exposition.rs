//! Metrics in Prometheus' text format 0.0.4, named by OpenTelemetry's compatibility rules.
//!
//! Dots become underscores, a unit of seconds and the total of a counter are spelled out, and what a unit in braces counts is
//! left out.

use std::collections::BTreeMap;
use std::fmt::{Display, Write};

use opentelemetry::KeyValue;
use opentelemetry_sdk::metrics::data::{
    AggregatedMetrics, Histogram, Metric, MetricData, ResourceMetrics,
};
use opentelemetry_sdk::metrics::{InMemoryMetricExporter, SdkMeterProvider};

/// A provider whose metrics can be read as text.
#[derive(Clone)]
pub(super) struct Exposed {
    pub(super) provider: SdkMeterProvider,
    exporter: InMemoryMetricExporter,
}

impl Exposed {
    pub(super) fn new() -> Self {
        let exporter = InMemoryMetricExporter::default();
        let builder = SdkMeterProvider::builder();
        Self {
            provider: builder.with_periodic_exporter(exporter.clone()).build(),
            exporter,
        }
    }

    /// All that was measured so far.
    pub(super) fn text(&self) -> String {
        self.exporter.reset();
        self.provider.force_flush().unwrap();
        let collected = self.exporter.get_finished_metrics().unwrap();
        let scopes = collected.iter().flat_map(ResourceMetrics::scope_metrics);
        let mut page = Page::default();
        for metric in scopes.flat_map(|scope| scope.metrics()) {
            page.metric(metric);
        }
        page.0
    }
}

#[derive(Default)]
struct Page(String);

impl Page {
    fn metric(&mut self, metric: &Metric) {
        match metric.data() {
            AggregatedMetrics::U64(data) => self.data(metric, data),
            AggregatedMetrics::I64(data) => self.data(metric, data),
            AggregatedMetrics::F64(data) => self.data(metric, data),
        }
    }

    fn data<T: Copy + Display>(&mut self, metric: &Metric, data: &MetricData<T>) {
        match data {
            MetricData::Sum(sum) => {
                let (kind, suffix) = if sum.is_monotonic() {
                    ("counter", "_total")
                } else {
                    ("gauge", "")
                };
                let name = self.head(metric, kind, suffix);
                for point in sum.data_points() {
                    self.sample(&name, &labels(point.attributes(), None), point.value());
                }
            }
            MetricData::Gauge(gauge) => {
                let suffix = if metric.unit() == "1" { "_ratio" } else { "" };
                let name = self.head(metric, "gauge", suffix);
                for point in gauge.data_points() {
                    self.sample(&name, &labels(point.attributes(), None), point.value());
                }
            }
            MetricData::Histogram(histogram) => {
                let name = self.head(metric, "histogram", "");
                self.histogram(&name, histogram);
            }
            MetricData::ExponentialHistogram(_) => panic!("{} is exponential", metric.name()),
        }
    }

    fn histogram<T: Copy + Display>(&mut self, name: &str, histogram: &Histogram<T>) {
        for point in histogram.data_points() {
            let mut below = 0;
            let bounds = point.bounds().map(|bound| bound.to_string());
            for (bound, count) in bounds.chain(["+Inf".to_owned()]).zip(point.bucket_counts()) {
                below += count;
                let labels = labels(point.attributes(), Some(&bound));
                self.sample(&format!("{name}_bucket"), &labels, below);
            }
            let labels = labels(point.attributes(), None);
            self.sample(&format!("{name}_sum"), &labels, point.sum());
            self.sample(&format!("{name}_count"), &labels, point.count());
        }
    }

    /// Writes what a metric is, and returns its name.
    fn head(&mut self, metric: &Metric, kind: &str, suffix: &str) -> String {
        let name = translated(metric.name(), metric.unit()) + suffix;
        writeln!(self.0, "# HELP {name} {}", metric.description()).unwrap();
        writeln!(self.0, "# TYPE {name} {kind}").unwrap();
        name
    }

    fn sample(&mut self, name: &str, labels: &str, value: impl Display) {
        writeln!(self.0, "{name}{{{labels}}} {value}").unwrap();
    }
}

fn translated(name: &str, unit: &str) -> String {
    let name = name.replace('.', "_");
    match unit {
        "s" => name + "_seconds",
        _ => name,
    }
}

fn labels<'a>(attributes: impl Iterator<Item = &'a KeyValue>, le: Option<&str>) -> String {
    let own = attributes.map(|it| (it.key.as_str().replace('.', "_"), it.value.to_string()));
    let mut all: BTreeMap<String, String> = own.collect();
    all.insert("otel_scope_name".to_owned(), "mamparo".to_owned());
    all.extend(le.map(|le| ("le".to_owned(), le.to_owned())));
    let all = all
        .iter()
        .map(|(name, value)| format!("{name}={}", quoted(value)));
    all.collect::<Vec<_>>().join(",")
}

fn quoted(value: &str) -> String {
    let escaped = value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n");
    format!("\"{escaped}\"")
}
