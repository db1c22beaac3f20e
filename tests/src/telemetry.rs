//! The telemetry of a whole stack: operation, deadline, retry, attempt timeout, attempt.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, Empty};
use mamparo::attempt_timeout::{AttemptPolicy, AttemptTimeoutLayer};
use mamparo::breaker::{BreakerLayer, BreakerPolicy};
use mamparo::bulkhead::{BulkheadLayer, BulkheadPolicy};
use mamparo::deadline::{DeadlineLayer, DeadlinePolicy};
use mamparo::replay::ReplayBody;
use mamparo::retry::{RetryLayer, RetryPolicy};
use mamparo_core::event::Observers;
use mamparo_core::{BoxError, Budget, Observer, Rejection};
use mamparo_telemetry::metrics::Places;
use mamparo_telemetry::{AttemptLayer, Metrics, OperationLayer, TracingObserver};
use mamparo_testkit::body::{Frames, ScriptedBody};
use mamparo_testkit::service::{Script, Step};
use opentelemetry::Value;
use opentelemetry::trace::{SpanKind, Status};
use opentelemetry_sdk::metrics::data::{AggregatedMetrics, MetricData, ResourceMetrics};
use opentelemetry_sdk::metrics::{InMemoryMetricExporter, SdkMeterProvider};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};
use tower::{ServiceBuilder, ServiceExt};
use tracing::Level;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

const MS: Duration = Duration::from_millis(1);

type Answer = Step<Response<ScriptedBody>>;
type Transport = Script<Request<ReplayBody<Empty<Bytes>>>, Response<ScriptedBody>, HeaderMap>;

/// What a stack wrote.
struct Written {
    spans: Vec<SpanData>,
    metrics: BTreeMap<String, u64>,
    levels: Vec<Level>,
    sent: Vec<HeaderMap>,
    answer: Result<u16, BoxError>,
}

/// Keeps the level of each record.
#[derive(Clone, Default)]
struct Levels(Arc<Mutex<Vec<Level>>>);

impl<S: tracing::Subscriber> Layer<S> for Levels {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        self.0.lock().unwrap().push(*event.metadata().level());
    }
}

impl fmt::Debug for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {:?} {:?}", self.spans, self.metrics, self.levels)
    }
}

/// Makes one call, with three attempts of 100 ms each within a second, and returns all that was written.
async fn call(steps: impl IntoIterator<Item = Answer>) -> Written {
    call_within(1_000 * MS, steps).await
}

async fn call_within(deadline: Duration, steps: impl IntoIterator<Item = Answer>) -> Written {
    let exporter = InMemorySpanExporter::default();
    let spans = SdkTracerProvider::builder().with_simple_exporter(exporter.clone());
    let spans = spans.build();
    let reader = InMemoryMetricExporter::default();
    let metrics = SdkMeterProvider::builder().with_periodic_exporter(reader.clone());
    let metrics = metrics.build();
    let levels = Levels::default();
    let subscriber = tracing_subscriber::registry().with(levels.clone());
    let _logged = tracing::subscriber::set_default(subscriber);

    let budget = Budget::default();
    let counted = Metrics::of(&metrics).watch_budget("catalog", &budget);
    let observer: Arc<dyn Observer> =
        Arc::new(Observers::default().and(counted).and(TracingObserver));
    let retry = RetryPolicy::builder().max_attempts(3).budget(budget);
    let attempt = AttemptPolicy::builder().timeout(100 * MS);
    let transport: Transport = Script::noting(
        |request: &Request<ReplayBody<Empty<Bytes>>>| request.headers().clone(),
        steps,
    );
    let service = ServiceBuilder::new()
        .layer(
            OperationLayer::http("catalog")
                .tracer_provider(&spans)
                .meter_provider(&metrics),
        )
        .layer(
            DeadlineLayer::http(DeadlinePolicy::within(deadline).unwrap())
                .dependency("catalog")
                .observer(Arc::clone(&observer)),
        )
        .layer(
            RetryLayer::http(retry.build().unwrap())
                .dependency("catalog")
                .observer(Arc::clone(&observer)),
        )
        .layer(
            AttemptTimeoutLayer::http(attempt.build().unwrap())
                .dependency("catalog")
                .observer(Arc::clone(&observer)),
        )
        .layer(
            AttemptLayer::http("catalog")
                .tracer_provider(&spans)
                .meter_provider(&metrics),
        )
        .service(transport.clone());
    let request = Request::get("http://catalog/items").body(Empty::new());
    let answer = match service.oneshot(request.unwrap()).await {
        Ok(response) => {
            let status = response.status().as_u16();
            response.into_body().collect().await.map(|_| status)
        }
        Err(error) => Err(error),
    };
    metrics.force_flush().unwrap();
    Written {
        spans: exporter.get_finished_spans().unwrap(),
        metrics: sums(&reader.get_finished_metrics().unwrap()),
        levels: levels.0.lock().unwrap().clone(),
        sent: transport.requests(),
        answer,
    }
}

/// The counters, each summed over its attributes.
fn sums(all: &[ResourceMetrics]) -> BTreeMap<String, u64> {
    let scopes = all.iter().flat_map(ResourceMetrics::scope_metrics);
    let metrics = scopes.flat_map(|scope| scope.metrics());
    let counters = metrics.filter_map(|metric| match metric.data() {
        AggregatedMetrics::U64(MetricData::Sum(sum)) => {
            let total = sum.data_points().map(|point| point.value()).sum();
            Some((metric.name().to_owned(), total))
        }
        _ => None,
    });
    counters.collect()
}

fn status(code: u16) -> Answer {
    let mut response = Response::new(ScriptedBody::new(Frames::new()));
    *response.status_mut() = code.try_into().unwrap();
    Step::answer(response)
}

impl Written {
    fn operation(&self) -> &SpanData {
        let mut found = self
            .spans
            .iter()
            .filter(|s| s.span_kind == SpanKind::Internal);
        let operation = found.next().unwrap();
        assert!(found.next().is_none(), "one operation");
        operation
    }

    /// The attempts, as they were sent.
    fn attempts(&self) -> Vec<&SpanData> {
        let clients = self
            .spans
            .iter()
            .filter(|s| s.span_kind == SpanKind::Client);
        let mut clients: Vec<_> = clients.collect();
        clients.sort_by_key(|span| span.start_time);
        clients
    }
}

fn value(span: &SpanData, key: &str) -> Option<Value> {
    let found = span.attributes.iter().find(|a| a.key.as_str() == key);
    found.map(|attribute| attribute.value.clone())
}

/// Rows P-D8 and I9; RC-02, RC-07, RC-12, TC-02.
#[tokio::test(start_paused = true)]
async fn each_attempt_of_a_retried_operation_is_a_numbered_span_below_it() {
    let written = call([status(503), status(503), status(200)]).await;
    assert!(matches!(written.answer, Ok(200)));
    let operation = written.operation();
    assert_eq!(operation.status, Status::Unset, "it recovered");
    let attempts = written.attempts();
    let counts: Vec<_> = attempts
        .iter()
        .map(|span| value(span, "http.request.resend_count"))
        .collect();
    assert_eq!(counts, [None, Some(Value::I64(1)), Some(Value::I64(2))]);
    for (span, headers) in attempts.iter().zip(&written.sent) {
        assert_eq!(span.parent_span_id, operation.span_context.span_id());
        let own = format!(
            "00-{}-{}-01",
            operation.span_context.trace_id(),
            span.span_context.span_id()
        );
        assert_eq!(headers["traceparent"], own.as_str());
    }
    let events: Vec<_> = operation.events.iter().map(|event| &*event.name).collect();
    assert_eq!(events, ["retry scheduled", "retry scheduled"]);
    let keys: Vec<_> = operation.events.events[0]
        .attributes
        .iter()
        .map(|attribute| attribute.key.as_str())
        .collect();
    assert_eq!(keys, ["reason", "backoff_ms", "remaining_deadline_ms"]);
}

#[tokio::test(start_paused = true)]
async fn amplification_recovery_and_use_of_the_budget_can_be_read_off() {
    let written = call([status(503), status(503), status(200)]).await;
    let count = |name: &str| written.metrics.get(name).copied().unwrap_or_default();
    assert_eq!(
        (count("mamparo.attempts"), count("mamparo.operations")),
        (3, 1)
    );
    let recovery = (
        count("mamparo.recovered_operations"),
        count("mamparo.resent_operations"),
    );
    assert_eq!(recovery, (1, 1));
    assert_eq!(count("mamparo.resends"), 2);
    assert_eq!(count("mamparo.budget.consumed"), 2);
    assert!(count("mamparo.budget.allowed") > 0);
}

/// ES-07, ES-11: an attempt cut by its own limit is an error, the operation that recovers is none.
#[tokio::test(start_paused = true)]
async fn a_hung_attempt_is_a_timeout_and_its_operation_recovers() {
    let written = call([Step::hang(), status(200)]).await;
    let attempts = written.attempts();
    let error = value(attempts[0], "error.type");
    assert_eq!(error, Some(Value::from("timeout")));
    assert_eq!(attempts[1].status, Status::Unset);
    assert_eq!(written.operation().status, Status::Unset);
    assert!(
        !written.levels.contains(&Level::WARN),
        "{:?}",
        written.levels
    );
}

/// Row P-D8: the deadline cuts the attempt that is under way, before its own limit.
#[tokio::test(start_paused = true)]
async fn the_attempt_that_the_deadline_cuts_is_a_timeout() {
    let written = call_within(50 * MS, [Step::hang()]).await;
    assert!(written.answer.is_err());
    let attempts = written.attempts();
    assert_eq!(attempts.len(), 1, "nothing fits after it");
    assert_eq!(
        value(attempts[0], "error.type"),
        Some(Value::from("timeout"))
    );
    let operation = written.operation();
    assert_eq!(operation.status, Status::error(""));
    assert_eq!(value(operation, "error.type"), Some(Value::from("timeout")));
    let warnings = written.levels.iter().filter(|level| **level == Level::WARN);
    assert_eq!(warnings.count(), 1, "{:?}", written.levels);
}

/// Row I6; EX-03: however many attempts and layers, one operation that fails is one warning.
#[tokio::test(start_paused = true)]
async fn an_operation_that_fails_is_one_warning() {
    let failures: [Vec<Answer>; 3] = [
        vec![status(503), status(503), status(503)],
        vec![Step::hang(), Step::hang(), Step::hang()],
        vec![Step::error("who knows")],
    ];
    for steps in failures {
        let written = call(steps).await;
        let warnings = written.levels.iter().filter(|level| **level == Level::WARN);
        assert_eq!(warnings.count(), 1, "{:?}", written.levels);
    }
}

/// A breaker that opens at the first failure stands inside the retry, a bulkhead outside.
#[tokio::test(start_paused = true)]
async fn spans_and_metrics_say_what_the_protecting_layers_decided() {
    let exporter = InMemorySpanExporter::default();
    let spans = SdkTracerProvider::builder().with_simple_exporter(exporter.clone());
    let spans = spans.build();
    let reader = InMemoryMetricExporter::default();
    let metrics = SdkMeterProvider::builder().with_periodic_exporter(reader.clone());
    let metrics = metrics.build();
    let bulkhead = BulkheadLayer::http(BulkheadPolicy::default()).dependency("catalog");
    let handle = bulkhead.handle();
    let places = move || Places::new(handle.in_flight(), handle.queued(), handle.limit());
    let observer: Arc<dyn Observer> =
        Arc::new(Metrics::of(&metrics).watch_bulkhead("catalog", places));
    let breaker = BreakerPolicy::builder().consecutive_failures(1).build();
    let service = ServiceBuilder::new()
        .layer(OperationLayer::http("catalog").tracer_provider(&spans))
        .layer(bulkhead.observer(Arc::clone(&observer)))
        .layer(
            RetryLayer::http(RetryPolicy::default())
                .dependency("catalog")
                .observer(Arc::clone(&observer)),
        )
        .layer(BreakerLayer::http(breaker.unwrap()).observer(observer))
        .layer(AttemptLayer::http("catalog").tracer_provider(&spans))
        .service(Transport::noting(
            |request| request.headers().clone(),
            [status(503)],
        ));
    let request = Request::get("http://catalog/items").body(Empty::<Bytes>::new());
    let answer = service.oneshot(request.unwrap()).await;
    assert!(Rejection::of(&*answer.unwrap_err()).is_some());

    let spans = exporter.get_finished_spans().unwrap();
    let [attempt, operation] = &spans[..] else {
        panic!("the second attempt is not sent: {spans:?}");
    };
    let says = |span, key| value(span, key).map(|value| value.to_string());
    let decided = |span| {
        ["mamparo.breaker.state", "mamparo.breaker.decision"].map(|key| says(span, key).unwrap())
    };
    assert_eq!(decided(attempt), ["closed", "admitted"]);
    assert_eq!(decided(operation), ["open", "rejected"]);
    for span in [attempt, operation] {
        assert_eq!(value(span, "mamparo.queue.wait"), Some(Value::F64(0.0)));
        assert_eq!(value(span, "mamparo.queue.limit"), Some(Value::I64(64)));
    }
    metrics.force_flush().unwrap();
    let counted = sums(&reader.get_finished_metrics().unwrap());
    assert_eq!(counted.get("mamparo.breaker.transitions"), Some(&1));
    assert_eq!(counted.get("mamparo.rejections"), Some(&1));
}
