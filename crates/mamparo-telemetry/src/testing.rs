//! What this crate's tests share: providers that keep what was written, and ways to look at it.

use std::collections::BTreeMap;

use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use mamparo_core::BoxError;
use mamparo_core::grpc::{Code, GRPC_MESSAGE, GRPC_STATUS};
use mamparo_testkit::body::{Frames, ScriptedBody};
use mamparo_testkit::service::{Script, Step};
use opentelemetry::{KeyValue, Value};
use opentelemetry_sdk::metrics::data::{AggregatedMetrics, MetricData, ResourceMetrics};
use opentelemetry_sdk::metrics::{InMemoryMetricExporter, SdkMeterProvider};
use opentelemetry_sdk::trace::{
    InMemorySpanExporter, Sampler, SdkTracerProvider, ShouldSample, SpanData,
};

/// A provider of spans that are kept.
pub(crate) struct Kept {
    pub(crate) provider: SdkTracerProvider,
    exporter: InMemorySpanExporter,
}

impl Kept {
    pub(crate) fn all() -> Self {
        Self::sampled(Sampler::ParentBased(Box::new(Sampler::AlwaysOn)))
    }

    pub(crate) fn sampled(sampler: impl ShouldSample + 'static) -> Self {
        let exporter = InMemorySpanExporter::default();
        let builder = SdkTracerProvider::builder().with_sampler(sampler);
        Self {
            provider: builder.with_simple_exporter(exporter.clone()).build(),
            exporter,
        }
    }

    /// The spans that have ended, in the order of their ends.
    pub(crate) fn spans(&self) -> Vec<SpanData> {
        self.exporter.get_finished_spans().unwrap()
    }

    pub(crate) fn only(&self) -> SpanData {
        let mut spans = self.spans();
        assert_eq!(spans.len(), 1, "{spans:?}");
        spans.remove(0)
    }
}

/// Looks at the attributes of a span or a data point.
pub(crate) trait Look {
    fn value(&self, key: &str) -> Option<Value>;

    fn text(&self, key: &str) -> Option<String> {
        self.value(key).map(|value| value.as_str().into_owned())
    }
}

impl Look for SpanData {
    fn value(&self, key: &str) -> Option<Value> {
        let mut found = self.attributes.iter().filter(|a| a.key.as_str() == key);
        let value = found.next().map(|attribute| attribute.value.clone());
        assert!(found.next().is_none(), "{key} is there twice");
        value
    }
}

/// A provider of metrics that are kept.
pub(crate) struct Counted {
    pub(crate) provider: SdkMeterProvider,
    exporter: InMemoryMetricExporter,
}

/// The data points of one metric: their attributes as text, and their count or sum.
pub(crate) type Points = BTreeMap<String, u64>;

impl Counted {
    pub(crate) fn new() -> Self {
        let exporter = InMemoryMetricExporter::default();
        let builder = SdkMeterProvider::builder();
        Self {
            provider: builder.with_periodic_exporter(exporter.clone()).build(),
            exporter,
        }
    }

    /// What there is so far; nothing at all before the first measurement.
    pub(crate) fn collect(&self) -> Vec<ResourceMetrics> {
        self.exporter.reset();
        self.provider.force_flush().unwrap();
        self.exporter.get_finished_metrics().unwrap()
    }

    /// The points of a metric: how often a duration was recorded, the sum of what was counted, or what a counter says.
    pub(crate) fn points(&self, name: &str) -> Points {
        let all = self.collect();
        let scopes = all.iter().flat_map(ResourceMetrics::scope_metrics);
        let metrics = scopes.flat_map(|scope| scope.metrics());
        let mut found = metrics.filter(|metric| metric.name() == name);
        let points = found.next().map(|metric| points(metric.data()));
        assert!(found.next().is_none(), "{name} is there twice");
        points.unwrap_or_default()
    }
}

fn points(data: &AggregatedMetrics) -> Points {
    match data {
        AggregatedMetrics::U64(MetricData::Sum(sum)) => sum
            .data_points()
            .map(|point| (line(point.attributes()), point.value()))
            .collect(),
        AggregatedMetrics::U64(MetricData::Gauge(gauge)) => gauge
            .data_points()
            .map(|point| (line(point.attributes()), point.value()))
            .collect(),
        AggregatedMetrics::I64(MetricData::Sum(sum)) => sum
            .data_points()
            .map(|point| (line(point.attributes()), point.value().unsigned_abs()))
            .collect(),
        AggregatedMetrics::U64(MetricData::Histogram(histogram)) => histogram
            .data_points()
            .map(|point| (line(point.attributes()), point.sum()))
            .collect(),
        AggregatedMetrics::F64(MetricData::Histogram(histogram)) => histogram
            .data_points()
            .map(|point| (line(point.attributes()), point.count()))
            .collect(),
        // Whole seconds of an age.
        AggregatedMetrics::F64(MetricData::Gauge(gauge)) => gauge
            .data_points()
            .map(|point| {
                let age = std::time::Duration::from_secs_f64(point.value());
                (line(point.attributes()), age.as_secs())
            })
            .collect(),
        other => panic!("no metric of ours is of this kind: {other:?}"),
    }
}

/// `key=value`, sorted, with a space between.
fn line<'a>(attributes: impl Iterator<Item = &'a KeyValue>) -> String {
    let mut pairs: Vec<String> = attributes
        .map(|attribute| format!("{}={}", attribute.key, attribute.value))
        .collect();
    pairs.sort();
    pairs.join(" ")
}

/// An answer with this body.
pub(crate) fn answer(status: u16, body: impl Into<Frames>) -> Response<ScriptedBody> {
    let mut response = Response::new(ScriptedBody::new(body));
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    response
}

/// An answer without a body.
pub(crate) fn status(status: u16) -> Step<Response<ScriptedBody>> {
    Step::answer(answer(status, Frames::new()))
}

pub(crate) fn get(uri: &str) -> Request<()> {
    Request::get(uri).body(()).unwrap()
}

/// A transport that answers by script and keeps the headers that reached it.
pub(crate) type Transport = Script<Request<()>, Response<ScriptedBody>, HeaderMap>;

pub(crate) fn transport(
    steps: impl IntoIterator<Item = Step<Response<ScriptedBody>>>,
) -> Transport {
    Script::noting(|request: &Request<()>| request.headers().clone(), steps)
}

/// A call of a method.
pub(crate) fn rpc(path: &str) -> Request<()> {
    let uri = format!("http://catalog:50051{path}");
    Request::post(uri).body(()).unwrap()
}

/// The head of an RPC's answer, with a body.
pub(crate) fn spoken(body: impl Into<Frames>) -> Response<ScriptedBody> {
    let mut response = answer(200, body);
    let kind = HeaderValue::from_static("application/grpc");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// An RPC that ends at its head.
pub(crate) fn trailers_only(code: Code) -> Response<ScriptedBody> {
    let mut response = spoken(Frames::new());
    let headers = response.headers_mut();
    headers.insert(GRPC_STATUS, HeaderValue::from(u16::from(code.number())));
    headers.insert(GRPC_MESSAGE, HeaderValue::from_static("says%20why"));
    response
}

/// An RPC with a message, and a status in its trailers.
pub(crate) fn streamed(code: Code) -> Response<ScriptedBody> {
    let frames = Frames::new().data("message");
    spoken(frames.trailer("grpc-status", &code.number().to_string()))
}

/// Reads an answer to its end.
pub(crate) async fn read<B>(answer: Result<Response<B>, BoxError>)
where
    B: http_body::Body<Error: std::fmt::Debug>,
{
    if let Ok(response) = answer {
        let _ended = response.into_body().collect().await.map(|_| ());
    }
}
