//! How many series a program can come to, whatever it is sent; alone in its process, since names are kept for good.

#![cfg(test)]

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::Empty;
use mamparo_core::breaker::{BreakerCause, BreakerState, Transition};
use mamparo_core::dependency::MAX_NAMES;
use mamparo_core::{
    CallContext, Dependency, Event, LayerKind, Observer, Reason, Rejection, What, clock,
};
use mamparo_telemetry::metrics::MAX_BREAKERS;
use mamparo_telemetry::{AttemptLayer, Metrics, OperationLayer};
use mamparo_testkit::service::{Script, Step};
use opentelemetry_sdk::metrics::data::{AggregatedMetrics, MetricData, ResourceMetrics};
use opentelemetry_sdk::metrics::{InMemoryMetricExporter, Instrument, SdkMeterProvider, Stream};
use tower::{Layer, ServiceExt};

/// As many series a metric as the SDK keeps apart, unless it is told otherwise.
const SDK_LIMIT: usize = 2_000;

/// More than any of our bounds.
const MANY: usize = MAX_NAMES + 1_000;

struct Counted {
    provider: SdkMeterProvider,
    exporter: InMemoryMetricExporter,
}

impl Counted {
    /// Keeps that many series a metric.
    fn up_to(limit: usize) -> Self {
        let exporter = InMemoryMetricExporter::default();
        let view =
            move |_: &Instrument| Stream::builder().with_cardinality_limit(limit).build().ok();
        let builder = SdkMeterProvider::builder().with_view(view);
        Self {
            provider: builder.with_periodic_exporter(exporter.clone()).build(),
            exporter,
        }
    }

    /// How many series each metric has.
    fn series(&self) -> BTreeMap<String, usize> {
        self.provider.force_flush().unwrap();
        let all = self.exporter.get_finished_metrics().unwrap();
        let scopes = all.iter().flat_map(ResourceMetrics::scope_metrics);
        let metrics = scopes.flat_map(|scope| scope.metrics());
        let counts = metrics.map(|metric| (metric.name().to_owned(), count(metric.data())));
        counts.collect()
    }
}

fn count(data: &AggregatedMetrics) -> usize {
    match data {
        AggregatedMetrics::U64(MetricData::Sum(sum)) => sum.data_points().count(),
        AggregatedMetrics::U64(MetricData::Gauge(gauge)) => gauge.data_points().count(),
        AggregatedMetrics::F64(MetricData::Histogram(histogram)) => histogram.data_points().count(),
        other => panic!("no metric of this test is of this kind: {other:?}"),
    }
}

fn transport() -> Script<Request<()>, Response<Empty<Bytes>>, ()> {
    let answer = || Step::answer(Response::new(Empty::new()));
    Script::noting(|_: &Request<()>| (), []).otherwise(answer)
}

fn request(method: Method, uri: String) -> Request<()> {
    let request = Request::builder().method(method).uri(uri);
    request.body(()).unwrap()
}

/// Dependencies by the thousand, as a program would have that names them after its customers; and what a caller can make up.
#[tokio::test]
async fn no_metric_has_more_series_than_the_bounds_allow() {
    let counted = Counted::up_to(100_000);
    let meters = &counted.provider;
    let attempt = AttemptLayer::http("catalog")
        .meter_provider(meters)
        .layer(transport());
    let rpc = OperationLayer::grpc("catalog")
        .meter_provider(meters)
        .layer(transport());
    let metrics: Arc<dyn Observer> = Arc::new(Metrics::of(meters));
    for number in 0..MANY {
        // Nobody's name before: what is called is not what counts.
        let odd = Method::from_bytes(format!("ODD{number}").as_bytes()).unwrap();
        let sent = request(odd, format!("http://catalog/items/{number}?id={number}"));
        drop(attempt.clone().oneshot(sent).await);
        let called = request(
            Method::POST,
            format!("http://catalog/shop.Catalog/Find{number}"),
        );
        drop(rpc.clone().oneshot(called).await);

        let dependency = Dependency::named(&format!("customer-{number}"));
        let operation = OperationLayer::http(dependency).meter_provider(meters);
        drop(operation.layer(transport()).oneshot(Request::new(())).await);
        let context = CallContext::join(LayerKind::Retry, dependency);
        let refused = Rejection::refused(Reason::BulkheadFull, dependency);
        Event::report(Some(&metrics), &context, What::Rejected(&refused));
        let (closed, open) = (BreakerState::Closed, BreakerState::Open);
        let cause = BreakerCause::FailureRate;
        let mut change = Transition::new(closed, Some(open), cause, clock::now());
        change.key = Some(number.to_string().into());
        Event::report(Some(&metrics), &context, What::BreakerTransition(&change));
    }
    // Each known name, and those that are told apart no more; `catalog` is among the known.
    let dependencies = MAX_NAMES + 1;
    let expected = [
        ("http.client.request.duration", 1),
        ("mamparo.attempts", 1),
        ("mamparo.breaker.state", MAX_BREAKERS),
        ("mamparo.breaker.transitions", dependencies - 1),
        ("mamparo.operation.duration", dependencies),
        ("mamparo.operations", dependencies),
        ("mamparo.rejections", dependencies - 1),
        ("rpc.client.call.duration", METHODS + 1),
    ];
    let expected: BTreeMap<_, _> = expected
        .map(|(name, count)| (name.to_owned(), count))
        .into();
    assert_eq!(counted.series(), expected);
}

/// As many methods of RPCs as are told apart.
const METHODS: usize = 1_024;

/// A program that calls whatever address it is given: the SDK's own limit is the bound.
#[tokio::test]
async fn addresses_are_bounded_by_the_sdk() {
    let exporter = InMemoryMetricExporter::default();
    let builder = SdkMeterProvider::builder();
    let provider = builder.with_periodic_exporter(exporter.clone()).build();
    let counted = Counted { provider, exporter };
    let attempt = AttemptLayer::http("catalog").meter_provider(&counted.provider);
    let attempt = attempt.layer(transport());
    for number in 0..MANY {
        let sent = request(Method::GET, format!("http://host-{number}/"));
        drop(attempt.clone().oneshot(sent).await);
    }
    let series = counted.series();
    assert_eq!(
        series["http.client.request.duration"],
        SDK_LIMIT + 1,
        "and one for all others"
    );
    assert_eq!(series["mamparo.attempts"], 1);
}
