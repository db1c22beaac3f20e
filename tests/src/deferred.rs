//! The spans of a transaction of the defer plane, across a wait that outlives its engine.

use std::future::pending;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use mamparo_core::BoxError;
use mamparo_durable::backend;
use mamparo_durable::engine::{Engine, Transaction};
use mamparo_durable::machine::{Answer, Outcome, State, TransactionId};
use mamparo_durable::policy::{Policies, Policy, Wait};
use mamparo_durable::web::{HttpSender, Judge, StoredRequest};
use mamparo_sqlite::SqliteDurable;
use mamparo_telemetry::durable::{Traced, traced};
use mamparo_telemetry::{AttemptLayer, OperationLayer};
use mamparo_testkit::body::ScriptedBody;
use mamparo_testkit::service::{Script, Step};
use opentelemetry::trace::{SpanId, SpanKind};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};
use tower::{ServiceBuilder, ServiceExt, service_fn};

const MS: Duration = Duration::from_millis(1);

fn engine(file: &Path) -> Engine {
    let wait = Wait::builder().base(300 * MS).jitter(0.0).build().unwrap();
    let policy = Policy::builder().business(wait).build().unwrap();
    Engine::builder(SqliteDurable::open(file).unwrap().backend())
        .policies(Policies::new(policy))
        .build()
        .unwrap()
}

fn id() -> TransactionId {
    TransactionId::new("payment-1").unwrap()
}

/// The retry is made by another engine, over the same file: all that it knows of the first trace was stored.
#[tokio::test]
async fn a_retry_links_the_operation_whose_refusal_it_follows_across_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("engine.db");
    let exporter = InMemorySpanExporter::default();
    let provider = SdkTracerProvider::builder()
        .with_simple_exporter(exporter.clone())
        .build();
    refused_now(&file, &provider).await;

    let script = Script::noting(
        |request: &Request<Full<Bytes>>| request.headers().clone(),
        [Step::answer(Response::new(ScriptedBody::empty()))],
    );
    let stack = ServiceBuilder::new()
        .layer(OperationLayer::http("psp").tracer_provider(&provider))
        .layer(AttemptLayer::http("psp").tracer_provider(&provider))
        .service(script.clone());
    let sender = HttpSender::<_, Full<Bytes>>::new(stack, Judge::default());
    let engine = engine(&file);
    let running = engine.run(Traced::new(sender).tracer_provider(&provider));
    let done = async {
        while engine.load(&id()).await.unwrap().unwrap().progress.state != State::Succeeded {
            tokio::time::sleep(10 * MS).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), done)
        .await
        .unwrap();
    running.stop().await.unwrap();

    let spans = exporter.get_finished_spans().unwrap();
    let named = |name: &str| spans.iter().find(|span| span.name == name).unwrap();
    let (first, retry) = (
        named("mamparo.operation checkout"),
        named("mamparo.defer payment"),
    );
    let link = &retry.links.links[0].span_context;
    assert_eq!(link.trace_id(), first.span_context.trace_id());
    assert_eq!(link.span_id(), first.span_context.span_id());
    assert_eq!(retry.span_kind, SpanKind::Consumer);
    assert_eq!(retry.parent_span_id, SpanId::INVALID, "a trace of its own");
    assert_ne!(retry.span_context.trace_id(), first.span_context.trace_id());
    let send = named("POST");
    assert_eq!(above(send, &spans).name, "mamparo.operation psp");
    assert_eq!(above(above(send, &spans), &spans).name, retry.name);
    let traceparent = &script.requests()[0]["traceparent"];
    let trace = retry.span_context.trace_id().to_string();
    assert!(traceparent.to_str().unwrap().contains(&trace));
}

/// An operation is refused, and what is to be sent later is stored.
async fn refused_now(file: &Path, provider: &SdkTracerProvider) {
    let engine = engine(file);
    let running = engine.run(service_fn(|_: backend::Request| {
        pending::<Result<Option<Answer>, BoxError>>()
    }));
    let checkout = service_fn(|request: Request<Bytes>| {
        let engine = engine.clone();
        async move {
            let stored = StoredRequest::new(&request).encode();
            let refused = Answer::new(1, 0, Outcome::Refused);
            let payment = Transaction::new(id(), "payment", stored).answered(refused);
            engine.begin(traced(payment)).await?;
            Ok::<_, BoxError>(Response::new(ScriptedBody::empty()))
        }
    });
    let operation = OperationLayer::http("checkout").tracer_provider(provider);
    let request = Request::post("http://psp.internal/charges")
        .body("5 EUR".into())
        .unwrap();
    let service = ServiceBuilder::new().layer(operation).service(checkout);
    drop(service.oneshot(request).await.unwrap());
    running.stop().await.unwrap();
}

fn above<'a>(span: &SpanData, spans: &'a [SpanData]) -> &'a SpanData {
    let is_above = |it: &&SpanData| it.span_context.span_id() == span.parent_span_id;
    spans.iter().find(is_above).unwrap()
}
