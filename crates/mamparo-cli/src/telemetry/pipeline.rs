//! Both providers, what a stack needs from them, and the end of it all.

use std::sync::{Arc, Mutex, PoisonError};

use mamparo_core::event::Observers;
use mamparo_core::grpc::Grpc;
use mamparo_core::http::Http;
use mamparo_core::{BoxError, Budget, Dependency, Observer};
use mamparo_telemetry::attempt::GrpcSend;
use mamparo_telemetry::operation::GrpcCall;
use mamparo_telemetry::{AttemptLayer, Metrics, OperationLayer};
use opentelemetry::trace::TracerProvider;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};

use super::figures::{Figures, Tap};
use super::otlp::{metric_exporter, send_spans, within};
use crate::trace::{Kept, Recorder};

/// The layers of telemetry of a dependency that speaks gRPC.
pub(crate) type RpcOperations = OperationLayer<Grpc, GrpcCall>;
pub(crate) type RpcAttempts = AttemptLayer<Grpc, GrpcSend>;

/// The telemetry of one run of the command.
#[derive(Debug)]
pub(crate) struct Pipeline {
    recorder: Recorder,
    spans: SdkTracerProvider,
    meters: SdkMeterProvider,
    metrics: Metrics,
    figures: Arc<Mutex<Figures>>,
    resource: Resource,
    collector: Option<String>,
}

impl Pipeline {
    /// Sets it up for a program of that name; `collector` is where all is sent in the end.
    ///
    /// # Errors
    ///
    /// What the exporter says of the collector's address.
    pub(crate) fn new(service: &'static str, collector: Option<String>) -> Result<Self, BoxError> {
        let recorder = Recorder::default();
        let resource = Resource::builder().with_service_name(service).build();
        let figures = Arc::<Mutex<Figures>>::default();
        let tap = Tap {
            figures: Arc::clone(&figures),
            collector: collector.as_deref().map(metric_exporter).transpose()?,
        };
        let meters = SdkMeterProvider::builder()
            .with_resource(resource.clone())
            .with_periodic_exporter(tap)
            .build();
        Ok(Self {
            spans: SdkTracerProvider::builder()
                .with_resource(resource.clone())
                .with_span_processor(recorder.clone())
                .build(),
            metrics: Metrics::of(&meters),
            recorder,
            meters,
            figures,
            resource,
            collector,
        })
    }

    /// Returns the two layers that record the operations and attempts of a dependency.
    pub(crate) fn layers(
        &self,
        dependency: Dependency,
    ) -> (OperationLayer<Http>, AttemptLayer<Http>) {
        (
            OperationLayer::http(dependency)
                .tracer_provider(&self.spans)
                .meter_provider(&self.meters),
            AttemptLayer::http(dependency)
                .tracer_provider(&self.spans)
                .meter_provider(&self.meters),
        )
    }

    /// The same, of a dependency that speaks gRPC.
    pub(crate) fn rpc_layers(&self, dependency: Dependency) -> (RpcOperations, RpcAttempts) {
        (
            OperationLayer::grpc(dependency)
                .tracer_provider(&self.spans)
                .meter_provider(&self.meters),
            AttemptLayer::grpc(dependency)
                .tracer_provider(&self.spans)
                .meter_provider(&self.meters),
        )
    }

    /// Returns who hears the events of a dependency's layers.
    pub(crate) fn observer(&self, dependency: Dependency, budget: &Budget) -> Arc<dyn Observer> {
        let metrics = self.metrics.clone().watch_budget(dependency, budget);
        Arc::new(Observers::default().and(metrics).and(self.recorder.clone()))
    }

    /// Returns who hears the events of a server's layers.
    pub(crate) fn server_observer(&self) -> Arc<dyn Observer> {
        Arc::new(self.metrics.clone())
    }

    /// Returns a tracer for spans that no layer makes.
    pub(crate) fn tracer(&self) -> SdkTracer {
        self.spans.tracer("mamparo-cli")
    }

    /// Returns the spans and waits so far.
    pub(crate) fn kept(&self) -> Kept {
        self.recorder.kept()
    }

    /// Collects the metrics, sends all to the collector if there is one, and returns the figures.
    ///
    /// The second part says why the collector did not get it.
    pub(crate) async fn finish(&self) -> (Figures, Result<(), String>) {
        let meters = self.meters.clone();
        // Collecting blocks; a collector that hangs must not hold the runtime up.
        let metrics = async move {
            let flushed = tokio::task::spawn_blocking(move || meters.force_flush()).await;
            match flushed {
                Ok(sent) => sent.map_err(|error| error.to_string()),
                Err(error) => Err(error.to_string()),
            }
        };
        let spans = async {
            match &self.collector {
                Some(url) => send_spans(url, &self.resource, self.kept().spans).await,
                None => Ok(()),
            }
        };
        let (metrics, spans) = tokio::join!(within(metrics), spans);
        let figures = self.figures.lock().unwrap_or_else(PoisonError::into_inner);
        let url = self.collector.as_deref().unwrap_or_default();
        let sent = spans.and(metrics);
        let sent =
            sent.map_err(|why| format!("spans and metrics were not exported to {url}: {why}"));
        (figures.clone(), sent)
    }
}
