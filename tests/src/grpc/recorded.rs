//! What is recorded of calls between tonic's clients and servers: one trace, whatever was sent how often.

use std::net::SocketAddr;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream;
use h2::Reason;
use mamparo::client::{TonicClient, tonic};
use mamparo::deadline::DeadlinePolicy;
use mamparo::serve;
use mamparo::stack::Stack;
use mamparo_core::grpc::Grpc;
use mamparo_telemetry::attempt::GrpcSend;
use mamparo_telemetry::operation::GrpcCall;
use mamparo_telemetry::{AttemptLayer, OperationLayer, ServerCallLayer};
use mamparo_testkit::grpc::{
    Answer, Echo, EchoClient, EchoReply, EchoRequest, EchoServer, Echoing, Exchange, ScriptedH2,
    connect, serve,
};
use opentelemetry::Value;
use opentelemetry::trace::{SpanId, SpanKind, Status as SpanStatus};
use opentelemetry_sdk::metrics::data::{AggregatedMetrics, MetricData, ResourceMetrics};
use opentelemetry_sdk::metrics::{InMemoryMetricExporter, SdkMeterProvider};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};
use tokio::net::TcpListener;
use tonic::Code;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Server};
use tower::ServiceExt;

use super::relay::Relay;

const MS: Duration = Duration::from_millis(1);
const SAY: &str = "mamparo.test.v1.Echo/Say";
const COUNT: &str = "mamparo.test.v1.Echo/Count";

type Client =
    EchoClient<TonicClient<Channel, OperationLayer<Grpc, GrpcCall>, AttemptLayer<Grpc, GrpcSend>>>;

/// Where all spans and metrics of a test go.
struct Recorded {
    provider: SdkTracerProvider,
    spans: InMemorySpanExporter,
    meters: SdkMeterProvider,
    metrics: InMemoryMetricExporter,
}

impl Recorded {
    fn new() -> Self {
        let spans = InMemorySpanExporter::default();
        let metrics = InMemoryMetricExporter::default();
        let provider = SdkTracerProvider::builder().with_simple_exporter(spans.clone());
        let meters = SdkMeterProvider::builder().with_periodic_exporter(metrics.clone());
        Self {
            provider: provider.build(),
            spans,
            meters: meters.build(),
            metrics,
        }
    }

    fn client(&self, address: SocketAddr) -> Client {
        let operation = OperationLayer::grpc("echo")
            .server("echo.internal", address.port())
            .retry_metrics()
            .tracer_provider(&self.provider)
            .meter_provider(&self.meters);
        let attempt = AttemptLayer::grpc("echo").tracer_provider(&self.provider);
        let deadline = DeadlinePolicy::within(300 * MS).unwrap();
        let stack = Stack::grpc("echo").deadline(deadline);
        EchoClient::new(tonic(
            connect(address),
            &stack.telemetry(operation, attempt),
        ))
    }

    async fn serve(&self, service: impl Echo) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let record = ServerCallLayer::grpc()
            .tracer_provider(&self.provider)
            .meter_provider(&self.meters);
        let server = Server::builder()
            .layer(record)
            .layer(serve::grpc())
            .add_service(EchoServer::new(service));
        tokio::spawn(server.serve_with_incoming(TcpIncoming::from(listener)));
        address
    }

    /// All spans, once so many have ended: a server's may end after its client has the answer.
    async fn spans(&self, expected: usize) -> Vec<SpanData> {
        for _ in 0..200 {
            let spans = self.spans.get_finished_spans().unwrap();
            if spans.len() >= expected {
                return spans;
            }
            tokio::time::sleep(5 * MS).await;
        }
        panic!("{:?}", self.spans.get_finished_spans());
    }

    /// How often a histogram was recorded.
    fn count(&self, name: &str) -> u64 {
        self.meters.force_flush().unwrap();
        let all = self.metrics.get_finished_metrics().unwrap();
        let last = all.last().into_iter();
        let scopes = last.flat_map(ResourceMetrics::scope_metrics);
        let metrics = scopes.flat_map(|scope| scope.metrics());
        let found = metrics.filter(|metric| metric.name() == name);
        let count = |data: &AggregatedMetrics| -> u64 {
            match data {
                AggregatedMetrics::F64(MetricData::Histogram(data)) => {
                    data.data_points().map(|point| point.count()).sum()
                }
                AggregatedMetrics::U64(MetricData::Histogram(data)) => {
                    data.data_points().map(|point| point.count()).sum()
                }
                other => panic!("no histogram: {other:?}"),
            }
        };
        found.map(|metric| count(metric.data())).sum()
    }
}

fn text(span: &SpanData, key: &str) -> Option<String> {
    value(span, key).map(|value| value.to_string())
}

fn value(span: &SpanData, key: &str) -> Option<Value> {
    let mut all = span.attributes.iter();
    let found = all.find(|attribute| attribute.key.as_str() == key)?;
    Some(found.value.clone())
}

fn named<'a>(spans: &'a [SpanData], name: &str, kind: &SpanKind) -> Vec<&'a SpanData> {
    let fits = |span: &&SpanData| span.name == name && span.span_kind == *kind;
    spans.iter().filter(fits).collect()
}

/// A service that asks another one at once.
fn relay(next: Client) -> impl Echo {
    let pause = Duration::ZERO;
    Relay { next, pause }
}

/// RP-01, RP-09: through two servers, each span below the one that led to it.
#[tokio::test]
async fn calls_through_a_chain_of_servers_are_one_trace() {
    let recorded = Recorded::new();
    let last = recorded.serve(Echoing).await;
    let first = recorded.serve(relay(recorded.client(last))).await;
    let mut client = recorded.client(first);
    client.say(EchoRequest::text("a")).await.unwrap();
    let spans = recorded.spans(6).await;
    let below = |above| spans.iter().find(move |span| span.parent_span_id == above);
    let mut line = Vec::new();
    let mut above = SpanId::INVALID;
    while let Some(span) = below(above) {
        line.push((span.name.to_string(), span.span_kind.clone()));
        above = span.span_context.span_id();
    }
    let hop = [
        (SAY.to_owned(), SpanKind::Client),
        (
            "Attempt.mamparo.test.v1.Echo.Say".to_owned(),
            SpanKind::Internal,
        ),
        (SAY.to_owned(), SpanKind::Server),
    ];
    assert_eq!(line, [hop.clone(), hop].concat());
    assert!(spans.iter().all(|span| span.status == SpanStatus::Unset));
    assert_eq!(recorded.count("rpc.client.call.duration"), 2);
    assert_eq!(recorded.count("rpc.server.call.duration"), 2);
    assert_eq!(recorded.count("grpc.client.call.retries"), 0);
}

/// RP-V2: what was retried is no error of the call.
#[tokio::test]
async fn a_call_that_is_sent_again_is_one_span_with_two_attempts() {
    let recorded = Recorded::new();
    let busy = Answer::status(Code::Unavailable);
    let server = serve([busy, Answer::echo()]).await;
    let mut client = recorded.client(server.address());
    client.say(EchoRequest::text("a")).await.unwrap();
    let spans = recorded.spans(3).await;
    let attempts = named(
        &spans,
        "Attempt.mamparo.test.v1.Echo.Say",
        &SpanKind::Internal,
    );
    let told = attempts.iter().map(|span| {
        (
            text(span, "rpc.status_code").unwrap(),
            value(span, "previous-rpc-attempts").unwrap(),
            span.status == SpanStatus::error(""),
        )
    });
    let expected = [
        ("UNAVAILABLE".to_owned(), Value::I64(0), true),
        ("OK".to_owned(), Value::I64(1), false),
    ];
    assert_eq!(told.collect::<Vec<_>>(), expected);
    let call = named(&spans, SAY, &SpanKind::Client)[0];
    assert_eq!(call.status, SpanStatus::Unset);
    assert_eq!(text(call, "server.address").unwrap(), "echo.internal");
    for (request, attempt) in server.requests().iter().zip(&attempts) {
        let parent = request.headers["traceparent"].to_str().unwrap().to_owned();
        assert!(
            parent.contains(&attempt.span_context.span_id().to_string()),
            "{parent}"
        );
    }
    assert_eq!(recorded.count("rpc.client.call.duration"), 1);
    for name in ["retries", "retry_delay"] {
        assert_eq!(
            recorded.count(&format!("grpc.client.call.{name}")),
            1,
            "{name}"
        );
    }
    for name in ["hedges", "transparent_retries"] {
        assert_eq!(
            recorded.count(&format!("grpc.client.call.{name}")),
            0,
            "{name}"
        );
    }
}

/// RP-02, TR-02: a stream that nobody has looked at is the same attempt once more.
#[tokio::test]
async fn a_transparent_retry_is_told_apart() {
    let recorded = Recorded::new();
    let good = Exchange::new().head().message(&EchoReply::default());
    let good = good.trailers(&[("grpc-status", "0")]);
    let refused = Exchange::new().reset(Reason::REFUSED_STREAM);
    let server = ScriptedH2::start([refused, good]).await;
    let mut client = recorded.client(server.address());
    client.say(EchoRequest::text("a")).await.unwrap();
    let spans = recorded.spans(3).await;
    let attempts = named(
        &spans,
        "Attempt.mamparo.test.v1.Echo.Say",
        &SpanKind::Internal,
    );
    let transparent = attempts.iter().map(|span| value(span, "transparent-retry"));
    let expected = [false, true].map(|is| Some(Value::Bool(is)));
    assert_eq!(transparent.collect::<Vec<_>>(), expected);
    let previous = attempts
        .iter()
        .map(|span| value(span, "previous-rpc-attempts"));
    assert!(
        previous
            .into_iter()
            .all(|count| count == Some(Value::I64(0)))
    );
    assert_eq!(recorded.count("grpc.client.call.transparent_retries"), 1);
    assert_eq!(recorded.count("grpc.client.call.retries"), 0);
}

/// Law 9, RP-05: a stream's status comes last, on both sides.
#[tokio::test]
async fn a_stream_that_is_cut_is_late_to_both() {
    let recorded = Recorded::new();
    let address = recorded.serve(Echoing).await;
    let counting = EchoRequest::text("a").frames(100, 50 * MS);
    let frames = recorded.client(address).count(counting).await.unwrap();
    let ends: Vec<_> = frames.into_inner().collect().await;
    assert_eq!(
        ends.last().unwrap().as_ref().unwrap_err().code(),
        Code::DeadlineExceeded
    );
    let spans = recorded.spans(3).await;
    for kind in [SpanKind::Client, SpanKind::Server] {
        let span = named(&spans, COUNT, &kind)[0];
        let lasted = span.end_time.duration_since(span.start_time).unwrap();
        assert!(
            lasted >= 250 * MS && lasted < 2_000 * MS,
            "{kind:?}: {lasted:?}"
        );
        // Whichever of them is first tells the other.
        let code = text(span, "rpc.status_code").unwrap();
        let late = ["DEADLINE_EXCEEDED", "CANCELLED"];
        assert!(late.contains(&&*code), "{kind:?}: {code}");
    }
    let call = named(&spans, COUNT, &SpanKind::Client)[0];
    assert_eq!(text(call, "rpc.status_code").unwrap(), "DEADLINE_EXCEEDED");
    assert_eq!(text(call, "error.type").unwrap(), "DEADLINE_EXCEEDED");
}

/// RP-V1, RP-V4: what tonic answers, of a path that it has no method for, and of one whose handler refuses.
#[tokio::test]
async fn a_method_that_tonic_does_not_know_is_other_to_the_server() {
    let recorded = Recorded::new();
    let address = recorded
        .serve(relay(recorded.client(([127, 0, 0, 1], 9).into())))
        .await;
    let empty = stream::empty::<EchoRequest>();
    let refused = recorded.client(address).collect(empty).await;
    let refused = refused.unwrap_err();
    assert_eq!(refused.code(), Code::Unimplemented);
    for path in ["/mamparo.test.v1.Echo/Shout", "/mamparo.test.v1.Nobody/Say"] {
        let request = http::Request::post(path).header("content-type", "application/grpc");
        let request = request.body(tonic::body::Body::empty()).unwrap();
        let refused = connect(address).oneshot(request).await.unwrap();
        assert_eq!(refused.headers()["grpc-status"], "12");
    }
    let spans = recorded.spans(5).await;
    let known = named(&spans, "mamparo.test.v1.Echo/Collect", &SpanKind::Server)[0];
    assert_eq!(
        text(known, "rpc.method").unwrap(),
        "mamparo.test.v1.Echo/Collect"
    );
    let others = named(&spans, "grpc", &SpanKind::Server);
    let original = others
        .iter()
        .map(|span| text(span, "rpc.method_original").unwrap());
    let expected = ["mamparo.test.v1.Echo/Shout", "mamparo.test.v1.Nobody/Say"];
    assert_eq!(original.collect::<Vec<_>>(), expected);
    assert!(
        others
            .iter()
            .all(|span| text(span, "rpc.method").unwrap() == "_OTHER")
    );
}
