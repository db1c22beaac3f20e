//! Shows one span per physical send, under one span of the operation, and what the metrics say.

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use mamparo::stack::Stack;
use mamparo_core::{BoxError, CallContext};
use mamparo_telemetry::{AttemptLayer, Metrics, OperationLayer};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider};
use tower::ServiceExt;

/// Fails the first time.
async fn book(headers: http::HeaderMap) -> StatusCode {
    if headers.contains_key("x-mamparo-attempt") {
        StatusCode::OK
    } else {
        StatusCode::BAD_GATEWAY
    }
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/book/1", listener.local_addr()?);
    let routes = Router::new().route("/book/{id}", get(book));
    tokio::spawn(axum::serve(listener, routes).into_future());

    // A real program exports by OTLP; here the spans stay in memory, to be printed.
    let exporter = InMemorySpanExporter::default();
    let provider = SdkTracerProvider::builder()
        .with_simple_exporter(exporter.clone())
        .build();
    let stack = Stack::http("catalog")
        .observer(Arc::new(Metrics::new()))
        .telemetry(
            OperationLayer::http("catalog").tracer_provider(&provider),
            AttemptLayer::http("catalog").tracer_provider(&provider),
        );
    let catalog = mamparo::client::reqwest(reqwest::Client::builder(), &stack)?;
    let answer = catalog
        .oneshot(http::Request::get(url).body(reqwest::Body::default())?)
        .await?;
    drop(answer);
    assert!(CallContext::current().operation().is_none());

    let spans = exporter.get_finished_spans()?;
    for span in &spans {
        println!(
            "{} {} {:?}",
            span.name,
            span.span_context.span_id(),
            span.status
        );
        for attribute in &span.attributes {
            println!("    {} = {}", attribute.key, attribute.value);
        }
    }
    assert_eq!(spans.len(), 3, "one operation, two attempts");
    Ok(())
}
