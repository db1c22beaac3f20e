//! The spans of the shop's own requests. They join the trace of whoever called.

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::HeaderMap;
use mamparo_telemetry::semconv::{HTTP_REQUEST_METHOD, HTTP_RESPONSE_STATUS_CODE};
use opentelemetry::KeyValue;
use opentelemetry::propagation::{Extractor, TextMapPropagator};
use opentelemetry::trace::{FutureExt, SpanKind, TraceContextExt, Tracer};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracer;

use super::notes::{Notes, QUOTES};

/// Outermost around the shop's routes: a server's span, current around all that the handler does.
///
/// It also notes how much time an order or a quote was given, before the server's deadline takes that header off.
pub(super) async fn traced(
    State((tracer, notes)): State<(SdkTracer, Notes)>,
    route: MatchedPath,
    request: Request,
    next: Next,
) -> Response {
    notes.order(request.headers());
    if route.as_str() == QUOTES {
        notes.quote(request.headers());
    }
    let caller = TraceContextPropagator::new().extract(&Headers(request.headers()));
    let name = format!("{} {}", request.method(), route.as_str());
    let span = tracer
        .span_builder(name)
        .with_kind(SpanKind::Server)
        .with_attributes([
            KeyValue::new(HTTP_REQUEST_METHOD, request.method().to_string()),
            KeyValue::new("http.route", route.as_str().to_owned()),
        ])
        .start_with_context(&tracer, &caller);
    let context = caller.with_span(span);
    let response = next.run(request).with_context(context.clone()).await;
    let status = i64::from(response.status().as_u16());
    let span = context.span();
    span.set_attribute(KeyValue::new(HTTP_RESPONSE_STATUS_CODE, status));
    span.end();
    notes.answered(route.as_str());
    response
}

struct Headers<'a>(&'a HeaderMap);

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(|name| name.as_str()).collect()
    }
}
