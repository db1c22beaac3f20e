//! A span for each physical send: ours and its peers, with the SDK and its batch exporter.

use std::future::Future;
use std::hint::black_box;
use std::sync::LazyLock;

use http::header::ACCEPT;
use http::{HeaderValue, Method, Request, Uri};
use mamparo_core::BoxError;
use mamparo_telemetry::{AttemptLayer, OperationLayer, ServerCallLayer};
use opentelemetry::trace::noop::NoopTracerProvider;
use opentelemetry::trace::{
    SpanContext, SpanId, TraceContextExt, TraceFlags, TraceId, TraceState, TracerProvider,
};
use opentelemetry::{Context, global};
use opentelemetry_instrumentation_tower::http::server::LayerBuilder;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider, SpanData, SpanExporter};
use tower::util::service_fn;
use tower::{Layer, Service, ServiceExt};
use tracing::{Dispatch, Instrument, Span, field, info_span};
use tracing_subscriber::layer::SubscriberExt;

use super::traffic::{Answer, Body, Inner, at_once, small};
use super::{Case, Group};

/// One span around a service that answers at once. The peers have their own defaults.
pub(super) fn attempts() -> Group {
    Group {
        name: "attempt span",
        cases: vec![
            Case::calls("bare, with an address", addressed, || Ok(at_once())),
            Case::calls("our span, no provider", addressed, || {
                Ok(AttemptLayer::http("catalog").layer(at_once()))
            }),
            below(
                TraceFlags::NOT_SAMPLED,
                ours("our span below an unsampled one", as_the_parent()),
            ),
            ours("our span, refused by the sampler", Sampler::AlwaysOff),
            below(
                TraceFlags::SAMPLED,
                ours("our span, recorded", as_the_parent()),
            ),
            below(TraceFlags::SAMPLED, opentelemetry_tower()),
            tracing_opentelemetry(
                "tracing-opentelemetry, refused by the sampler",
                Sampler::AlwaysOff,
            ),
            below(
                TraceFlags::SAMPLED,
                tracing_opentelemetry("tracing-opentelemetry, recorded", as_the_parent()),
            ),
        ],
    }
}

/// The span of an RPC and that of its attempt, around a service that answers at once; and the other side of it.
pub(super) fn rpcs() -> Group {
    let recorded = || provider(as_the_parent());
    let both = |name, sampler: fn() -> Sampler| {
        Case::calls(name, called, move || {
            let provider = provider(sampler())?;
            let call = OperationLayer::grpc("catalog").tracer_provider(&provider);
            let attempt = AttemptLayer::grpc("catalog").tracer_provider(&provider);
            Ok(call.layer(attempt.layer(at_once())))
        })
    };
    Group {
        name: "spans of an RPC",
        cases: vec![
            Case::calls("bare, with a method", called, || Ok(at_once())),
            Case::calls("call and attempt, no provider", called, || {
                let attempt = AttemptLayer::grpc("catalog").layer(at_once());
                Ok(OperationLayer::grpc("catalog").layer(attempt))
            }),
            below(
                TraceFlags::NOT_SAMPLED,
                both("call and attempt below an unsampled one", as_the_parent),
            ),
            below(
                TraceFlags::SAMPLED,
                both("call and attempt, recorded", as_the_parent),
            ),
            Case::calls("served, no provider", called, || {
                Ok(ServerCallLayer::grpc().layer(at_once().map_err(BoxError::from)))
            }),
            Case::calls("served, recorded", called, move || {
                let layer = ServerCallLayer::grpc().tracer_provider(&recorded()?);
                Ok(layer.layer(at_once().map_err(BoxError::from)))
            }),
        ],
    }
}

fn ours(name: &'static str, sampler: Sampler) -> Case {
    Case::calls(name, addressed, move || {
        let layer = AttemptLayer::http("catalog").tracer_provider(&provider(sampler.clone())?);
        Ok(layer.layer(at_once()))
    })
}

/// The peer is a server's layer: there is none for clients. It writes no `traceparent`, and ends at the head.
fn opentelemetry_tower() -> Case {
    Case::calls("opentelemetry-instrumentation-tower", addressed, || {
        global::set_tracer_provider(provider(as_the_parent())?);
        let layer = LayerBuilder::builder().build();
        // The layer keeps what it found; no other case may find it.
        global::set_tracer_provider(NoopTracerProvider::new());
        Ok(layer?.layer(at_once()))
    })
}

/// A span with the attributes of ours, without a `traceparent`.
fn tracing_opentelemetry(name: &'static str, sampler: Sampler) -> Case {
    let case = Case::calls(name, addressed, || Ok(traced(at_once())));
    Case::new(name, case.future, move || {
        let mut work = case.make()?;
        let tracer = provider(sampler.clone())?.tracer("bench");
        let layer = tracing_opentelemetry::layer().with_tracer(tracer);
        let dispatch = Dispatch::new(tracing_subscriber::registry().with(layer));
        Ok(Box::new(move |calls| {
            tracing::dispatcher::with_default(&dispatch, || work(calls));
        }))
    })
}

fn traced<S: Inner<Request<Body>>>(
    mut inner: S,
) -> impl Service<Request<Body>, Future = impl Future<Output = Answer>> {
    service_fn(move |request: Request<Body>| {
        let uri = request.uri();
        let span = info_span!(
            "GET",
            otel.kind = "client",
            http.request.method = request.method().as_str(),
            server.address = uri.host(),
            server.port = uri.port_u16(),
            url.full = %uri,
            http.response.status_code = field::Empty,
            network.protocol.version = "1.1",
            mamparo.dependency = "catalog",
        );
        let call = span.in_scope(|| inner.call(request));
        let call = async move {
            let answer = call.await;
            if let Ok(response) = &answer {
                let status = response.status().as_u16();
                Span::current().record("http.response.status_code", status);
            }
            answer
        };
        call.instrument(span)
    })
}

/// The SDK's default.
fn as_the_parent() -> Sampler {
    Sampler::ParentBased(Box::new(Sampler::AlwaysOn))
}

/// Does a case's calls below a span of this process.
fn below(flags: TraceFlags, case: Case) -> Case {
    Case::new(case.name, case.future, move || {
        let mut work = case.make()?;
        let above = Context::new().with_remote_span_context(SpanContext::new(
            TraceId::from(0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c),
            SpanId::from(0x00f0_67aa_0ba9_02b7),
            flags,
            false,
            TraceState::NONE,
        ));
        Ok(Box::new(move |calls| {
            let _above = above.clone().attach();
            work(calls);
        }))
    })
}

/// A GET with an address and a header: a client sends some, so that ours is not the one that the map is made for.
fn addressed() -> Request<Body> {
    static ADDRESS: LazyLock<Uri> =
        LazyLock::new(|| Uri::from_static("http://catalog:8080/items?page=2"));
    let mut request = small();
    *request.uri_mut() = ADDRESS.clone();
    let any = HeaderValue::from_static("*/*");
    request.headers_mut().insert(ACCEPT, any);
    request
}

/// A call of a method.
fn called() -> Request<Body> {
    static METHOD: LazyLock<Uri> =
        LazyLock::new(|| Uri::from_static("http://catalog:50051/shop.Catalog/Find"));
    let mut request = addressed();
    *request.uri_mut() = METHOD.clone();
    *request.method_mut() = Method::POST;
    request
}

fn provider(sampler: Sampler) -> Result<SdkTracerProvider, BoxError> {
    let builder = SdkTracerProvider::builder().with_sampler(sampler);
    let provider = builder.with_batch_exporter(Nowhere).build();
    // Answered by the exporter's thread, which thus has started before anything is counted.
    provider.force_flush()?;
    Ok(provider)
}

/// Exports by dropping.
#[derive(Debug)]
struct Nowhere;

impl SpanExporter for Nowhere {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        black_box(batch);
        Ok(())
    }
}
