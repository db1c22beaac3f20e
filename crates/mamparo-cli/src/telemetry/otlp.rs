//! OTLP over gRPC. A collector that is down costs a warning and a bounded wait, and nothing else.

use std::fmt::Display;
use std::time::Duration;

use opentelemetry_otlp::{
    ExporterBuildError, MetricExporter, RetryPolicy, SpanExporter, WithExportConfig,
    WithTonicConfig,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkError;
use opentelemetry_sdk::trace::{SdkTracerProvider, SpanData, SpanExporter as _};

/// A collector that has not answered by then is given up.
pub(super) const LIMIT: Duration = Duration::from_secs(2);

/// As many spans as go in one message: collectors take no more than 4 MiB at once.
const BATCH: usize = 512;

/// Makes what sends metrics to the collector at `url`; it must be made within a runtime.
pub(super) fn metric_exporter(url: &str) -> Result<MetricExporter, ExporterBuildError> {
    MetricExporter::builder()
        .with_tonic()
        .with_endpoint(url)
        .with_timeout(LIMIT)
        .with_retry_policy(RetryPolicy::disabled())
        .build()
}

/// The spans of a program that runs for long: sent in batches, as they end.
#[derive(Debug)]
pub(crate) struct Stream {
    spans: SdkTracerProvider,
}

impl Stream {
    /// Sends them to the collector at `url`; it must be made within a runtime.
    pub(crate) fn new(service: &'static str, url: &str) -> Result<Self, ExporterBuildError> {
        let resource = Resource::builder().with_service_name(service).build();
        let spans = SdkTracerProvider::builder()
            .with_resource(resource)
            .with_batch_exporter(span_exporter(url)?)
            .build();
        Ok(Self { spans })
    }

    pub(crate) const fn provider(&self) -> &SdkTracerProvider {
        &self.spans
    }

    /// Sends what is left, and says why it could not.
    pub(crate) async fn finish(&self) -> Result<(), String> {
        let spans = self.spans.clone();
        // It blocks until the collector has answered.
        let finished = tokio::task::spawn_blocking(move || spans.shutdown_with_timeout(LIMIT));
        within(async { finished.await.map_err(said)?.map_err(said) }).await
    }
}

fn span_exporter(url: &str) -> Result<SpanExporter, ExporterBuildError> {
    SpanExporter::builder()
        .with_tonic()
        .with_endpoint(url)
        .with_timeout(LIMIT)
        .with_retry_policy(RetryPolicy::disabled())
        .build()
}

/// Sends spans to the collector at `url`.
pub(super) async fn send_spans(
    url: &str,
    resource: &Resource,
    spans: Vec<SpanData>,
) -> Result<(), String> {
    let mut exporter = span_exporter(url).map_err(said)?;
    exporter.set_resource(resource);
    let export = async {
        for batch in spans.chunks(BATCH) {
            exporter.export(batch.to_vec()).await?;
        }
        Ok::<_, OTelSdkError>(())
    };
    within(export).await
}

/// Waits for an export, but not for ever.
pub(super) async fn within<E: Display>(
    export: impl Future<Output = Result<(), E>>,
) -> Result<(), String> {
    match tokio::time::timeout(LIMIT, export).await {
        Ok(sent) => sent.map_err(said),
        Err(_) => Err(format!("no answer within {LIMIT:?}")),
    }
}

fn said(error: impl Display) -> String {
    error.to_string()
}
