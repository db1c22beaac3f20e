//! A collector in this process: OTLP over gRPC, kept in memory.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use opentelemetry_proto::tonic::collector::metrics::v1::metrics_service_server::{
    MetricsService, MetricsServiceServer,
};
use opentelemetry_proto::tonic::collector::metrics::v1::{
    ExportMetricsServiceRequest, ExportMetricsServiceResponse,
};
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};

/// A collector on a free port.
#[derive(Debug)]
pub(crate) struct Collector {
    address: SocketAddr,
    got: Got,
}

/// What a test asks of a client span.
#[derive(Debug)]
pub(crate) struct ClientSpan {
    pub(crate) trace_id: String,
    pub(crate) span_id: String,
    pub(crate) resend_count: Option<i64>,
}

#[derive(Clone, Debug, Default)]
struct Got {
    spans: Arc<Mutex<Vec<Span>>>,
    metrics: Arc<Mutex<Vec<String>>>,
}

impl Collector {
    pub(crate) async fn start() -> Self {
        let incoming = TcpIncoming::bind(([127, 0, 0, 1], 0).into()).unwrap();
        let address = incoming.local_addr().unwrap();
        let got = Got::default();
        let server = Server::builder()
            .add_service(TraceServiceServer::new(got.clone()))
            .add_service(MetricsServiceServer::new(got.clone()));
        tokio::spawn(server.serve_with_incoming(incoming));
        Self { address, got }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the client spans, in the order in which they began.
    pub(crate) fn client_spans(&self) -> Vec<ClientSpan> {
        let mut spans = self.got.spans.lock().unwrap().clone();
        spans.retain(|span| span.kind == SpanKind::Client as i32);
        spans.sort_by_key(|span| span.start_time_unix_nano);
        spans.iter().map(ClientSpan::of).collect()
    }

    /// Returns the names of the spans that link one of this trace, each with how many spans lie in its own trace.
    pub(crate) fn linking(&self, trace: &str) -> Vec<(String, usize)> {
        let spans = self.got.spans.lock().unwrap().clone();
        let links = |span: &&Span| span.links.iter().any(|link| hex(&link.trace_id) == trace);
        let within = |one: &Span| {
            spans
                .iter()
                .filter(|it| it.trace_id == one.trace_id)
                .count()
        };
        let linking = spans.iter().filter(links);
        linking.map(|it| (it.name.clone(), within(it))).collect()
    }

    pub(crate) fn metric_names(&self) -> Vec<String> {
        self.got.metrics.lock().unwrap().clone()
    }
}

impl ClientSpan {
    fn of(span: &Span) -> Self {
        let count = span
            .attributes
            .iter()
            .find(|attribute| attribute.key == "http.request.resend_count");
        let count = count.map(|attribute| attribute.value.clone().unwrap().value.unwrap());
        Self {
            trace_id: hex(&span.trace_id),
            span_id: hex(&span.span_id),
            resend_count: count.map(|value| match value {
                Value::IntValue(count) => count,
                other => panic!("a count is an integer, not {other:?}"),
            }),
        }
    }
}

fn hex(id: &[u8]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[tonic::async_trait]
impl TraceService for Got {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let resources = request.into_inner().resource_spans.into_iter();
        let scopes = resources.flat_map(|resource| resource.scope_spans);
        let spans = scopes.flat_map(|scope| scope.spans);
        self.spans.lock().unwrap().extend(spans);
        Ok(Response::new(Default::default()))
    }
}

#[tonic::async_trait]
impl MetricsService for Got {
    async fn export(
        &self,
        request: Request<ExportMetricsServiceRequest>,
    ) -> Result<Response<ExportMetricsServiceResponse>, Status> {
        let resources = request.into_inner().resource_metrics.into_iter();
        let scopes = resources.flat_map(|resource| resource.scope_metrics);
        let metrics = scopes.flat_map(|scope| scope.metrics);
        self.metrics
            .lock()
            .unwrap()
            .extend(metrics.map(|metric| metric.name));
        Ok(Response::new(Default::default()))
    }
}
