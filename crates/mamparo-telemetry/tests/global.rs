//! What happens around the global providers; alone in its process, since they are global.

use std::time::Duration;

use http::{HeaderMap, HeaderValue, Request, Response, Uri};
use http_body_util::Empty;
use mamparo_telemetry::{AttemptLayer, OperationLayer, RECHECK};
use mamparo_testkit::service::{Script, Step};
use opentelemetry::trace::{
    FutureExt, SpanContext, SpanId, TraceContextExt, TraceFlags, TraceId, TraceState,
};
use opentelemetry::{Context, KeyValue, baggage::BaggageExt, global};
use opentelemetry_sdk::metrics::{InMemoryMetricExporter, SdkMeterProvider};
use opentelemetry_sdk::propagation::BaggagePropagator;
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider};
use tower::{Layer, Service, ServiceExt};

const CALLERS: &str = "00-00000000000000000000000000000001-0000000000000001-01";

fn request() -> Request<()> {
    let mut request = Request::new(());
    *request.uri_mut() = Uri::from_static("http://catalog/");
    let headers = request.headers_mut();
    headers.insert("traceparent", HeaderValue::from_static(CALLERS));
    headers.insert("tracestate", HeaderValue::from_static("a=1"));
    request
}

fn below_a_remote_span() -> Context {
    let remote = SpanContext::new(
        TraceId::from(7),
        SpanId::from(7),
        TraceFlags::SAMPLED,
        true,
        TraceState::NONE,
    );
    Context::new()
        .with_remote_span_context(remote)
        .with_baggage([KeyValue::new("who", "me")])
}

/// TC-04, and: a layer that was built and called before a provider was installed works after.
#[tokio::test]
async fn layers_built_before_the_providers_are_installed_work_after() {
    let transport = Script::<_, Response<Empty<bytes::Bytes>>, HeaderMap>::noting(
        |request: &Request<()>| request.headers().clone(),
        [],
    )
    .otherwise(|| Step::answer(Response::default()));
    let attempt = AttemptLayer::http("catalog").layer(transport.clone());
    let service = OperationLayer::http("catalog").layer(attempt);
    let send = || async {
        let call = async { service.clone().ready().await?.call(request()).await };
        call.with_context(below_a_remote_span()).await.map(|_| ())
    };
    let sent = || transport.requests().pop().unwrap();

    send().await.unwrap();
    assert_eq!(&sent(), request().headers(), "no provider: untouched");

    let exporter = InMemorySpanExporter::default();
    let builder = SdkTracerProvider::builder();
    global::set_tracer_provider(builder.with_simple_exporter(exporter.clone()).build());
    let metrics = InMemoryMetricExporter::default();
    let meters = SdkMeterProvider::builder()
        .with_periodic_exporter(metrics.clone())
        .build();
    global::set_meter_provider(meters.clone());
    tokio::time::sleep(2 * RECHECK).await;

    send().await.unwrap();
    let spans = exporter.get_finished_spans().unwrap();
    assert_eq!(spans.len(), 2);
    let own = spans[0].span_context.span_id().to_string();
    assert!(sent()["traceparent"].to_str().unwrap().contains(&own));
    meters.force_flush().unwrap();
    assert!(!metrics.get_finished_metrics().unwrap().is_empty());

    global::set_text_map_propagator(BaggagePropagator::new());
    tokio::time::sleep(2 * RECHECK + Duration::from_millis(1)).await;
    send().await.unwrap();
    assert_eq!(
        sent()["baggage"],
        "who=me",
        "a global propagator that does more is used"
    );
    assert_eq!(
        sent()["traceparent"],
        CALLERS,
        "fields that are not its own stay"
    );
}
