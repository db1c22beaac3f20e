//! The text format 0.0.4 of Prometheus, with names by OpenTelemetry's compatibility rules.
//!
//! What can't be in a name becomes an underscore, a unit of seconds and the total of a counter are spelled out, and what a unit in
//! braces counts is left out.

use std::collections::BTreeMap;
use std::fmt::Display;

use opentelemetry::KeyValue;
use opentelemetry_sdk::metrics::data::{
    AggregatedMetrics, ExponentialHistogram, Histogram, Metric, MetricData, ResourceMetrics,
};

/// Writes all of it.
pub(super) fn page(metrics: &ResourceMetrics) -> String {
    let mut page = Page::default();
    for scope in metrics.scope_metrics() {
        page.scope = scope.scope().name().to_owned();
        scope.metrics().for_each(|metric| page.metric(metric));
    }
    page.text
}

#[derive(Default)]
struct Page {
    scope: String,
    text: String,
}

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
                    self.sample(&name, point.attributes(), None, point.value());
                }
            }
            MetricData::Gauge(gauge) => {
                let suffix = if metric.unit() == "1" { "_ratio" } else { "" };
                let name = self.head(metric, "gauge", suffix);
                for point in gauge.data_points() {
                    self.sample(&name, point.attributes(), None, point.value());
                }
            }
            MetricData::Histogram(histogram) => {
                let name = self.head(metric, "histogram", "");
                self.histogram(&name, histogram);
            }
            MetricData::ExponentialHistogram(histogram) => {
                let name = self.head(metric, "histogram", "");
                self.without_buckets(&name, histogram);
            }
        }
    }

    fn histogram<T: Copy + Display>(&mut self, name: &str, histogram: &Histogram<T>) {
        let bucket = format!("{name}_bucket");
        for point in histogram.data_points() {
            let mut below = 0;
            let bounds = point.bounds().map(|bound| bound.to_string());
            for (bound, count) in bounds
                .chain([INFINITE.to_owned()])
                .zip(point.bucket_counts())
            {
                below += count;
                self.sample(&bucket, point.attributes(), Some(&bound), below);
            }
            self.sample(
                &format!("{name}_sum"),
                point.attributes(),
                None,
                point.sum(),
            );
            let count = format!("{name}_count");
            self.sample(&count, point.attributes(), None, point.count());
        }
    }

    /// This format has none of its kind.
    fn without_buckets<T: Copy + Display>(
        &mut self,
        name: &str,
        histogram: &ExponentialHistogram<T>,
    ) {
        let bucket = format!("{name}_bucket");
        for point in histogram.data_points() {
            let count = point.count();
            self.sample(&bucket, point.attributes(), Some(INFINITE), count);
            self.sample(
                &format!("{name}_sum"),
                point.attributes(),
                None,
                point.sum(),
            );
            self.sample(&format!("{name}_count"), point.attributes(), None, count);
        }
    }

    /// Writes what a metric is, and returns its name.
    fn head(&mut self, metric: &Metric, kind: &str, suffix: &str) -> String {
        let unit = if metric.unit() == "s" { "_seconds" } else { "" };
        let name = named(metric.name()) + unit + suffix;
        let says = metric
            .description()
            .replace('\\', "\\\\")
            .replace('\n', "\\n");
        self.text += &format!("# HELP {name} {says}\n# TYPE {name} {kind}\n");
        name
    }

    fn sample<'a>(
        &mut self,
        name: &str,
        attributes: impl Iterator<Item = &'a KeyValue>,
        below: Option<&str>,
        value: impl Display,
    ) {
        let own = attributes.map(|it| (named(it.key.as_str()), it.value.to_string()));
        let mut labels: BTreeMap<String, String> = own.collect();
        labels.insert("otel_scope_name".to_owned(), self.scope.clone());
        labels.extend(below.map(|bound| ("le".to_owned(), bound.to_owned())));
        let labels = labels
            .iter()
            .map(|(label, value)| format!("{label}={}", quoted(value)));
        let labels = labels.collect::<Vec<_>>().join(",");
        self.text += &format!("{name}{{{labels}}} {value}\n");
    }
}

const INFINITE: &str = "+Inf";

fn named(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    name.chars().map(plain).collect()
}

fn quoted(value: &str) -> String {
    let escaped = value.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{}\"", escaped.replace('\n', "\\n"))
}
