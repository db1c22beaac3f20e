//! What operators see: a page for Prometheus, and a file of spans.

use std::fmt::Display;
use std::fs::File;
use std::io::Write as _;
use std::sync::{Mutex, PoisonError};

use mamparo_core::BoxError;
use mamparo_durable::handler::Listener;
use mamparo_durable::machine::Alert;
use mamparo_rabbitmq::{ConsumerEvent, Settled};
use mamparo_telemetry::prometheus::Exposition;
use opentelemetry::metrics::{Counter, Gauge, Meter};
use opentelemetry::{KeyValue, global};
use opentelemetry_sdk::error::{OTelSdkError, OTelSdkResult};
use opentelemetry_sdk::trace::{SdkTracerProvider, SpanData, SpanExporter};
use serde_json::json;

use super::settings::Place;

/// The scope of the shop's own metrics.
const SCOPE: &str = "shop";

/// Sets the global providers, which all layers then write to; returns the page.
pub(crate) fn install(place: &Place) -> Result<Exposition, BoxError> {
    let exposition = Exposition::new();
    global::set_meter_provider(exposition.provider().clone());
    let path = place.traces.join(format!("{}.jsonl", place.service));
    let lines = Lines {
        service: place.service.clone(),
        file: Mutex::new(File::options().create(true).append(true).open(path)?),
    };
    let tracer = SdkTracerProvider::builder().with_simple_exporter(lines);
    global::set_tracer_provider(tracer.build());
    Ok(exposition)
}

/// Spans, one a line, written when they end: what a process said is there, however it dies. In earnest they go out by OTLP.
#[derive(Debug)]
struct Lines {
    service: String,
    file: Mutex<File>,
}

impl SpanExporter for Lines {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        for span in batch {
            let attributes = span.attributes.iter();
            let attributes = attributes.map(|it| (it.key.to_string(), json!(it.value.to_string())));
            let links = span.links.iter().map(|it| it.span_context.trace_id());
            let line = json!({
                "service": self.service,
                "name": span.name,
                "trace": span.span_context.trace_id().to_string(),
                "links": links.map(|trace| trace.to_string()).collect::<Vec<_>>(),
                "kind": format!("{:?}", span.span_kind),
                "status": format!("{:?}", span.status),
                "attributes": attributes.collect::<serde_json::Map<_, _>>(),
            });
            let written = writeln!(file, "{line}");
            written.map_err(|error| OTelSdkError::InternalFailure(error.to_string()))?;
        }
        Ok(())
    }
}

/// Writes to the log what a person may want to read.
#[expect(clippy::print_stderr, reason = "what a process says is its log")]
pub(crate) fn log(what: impl Display) {
    eprintln!("{what}");
}

/// What a service's workers do, counted; what the relay does is told by `Metrics`.
#[derive(Clone, Debug)]
pub(crate) struct Counts {
    messages: Counter<u64>,
    connected: Gauge<u64>,
    compensated: Counter<u64>,
    alerts: Counter<u64>,
    deadlocks: Counter<u64>,
}

impl Counts {
    pub(crate) fn new() -> Self {
        let meter: Meter = global::meter(SCOPE);
        Self {
            messages: meter.u64_counter("shop.messages").build(),
            connected: meter.u64_gauge("shop.consumer.connected").build(),
            compensated: meter.u64_counter("shop.compensated").build(),
            alerts: meter.u64_counter("shop.alerts").build(),
            deadlocks: meter.u64_counter("shop.deadlocks").build(),
        }
    }

    /// Hears a consumer.
    pub(crate) fn consumer(&self, event: &ConsumerEvent<'_>) {
        let queue = |queue: &str| KeyValue::new("queue", queue.to_owned());
        match event {
            ConsumerEvent::Connected { topology } => {
                self.connected.record(1, &[queue(topology.queue())]);
            }
            ConsumerEvent::Disconnected {
                topology, error, ..
            } => {
                log(format_args!("{}: {error}", topology.queue()));
                self.connected.record(0, &[queue(topology.queue())]);
            }
            ConsumerEvent::Settled {
                topology,
                delivery,
                settled,
                detail,
                ..
            } => {
                let settled = match settled {
                    Settled::Done => "done",
                    Settled::Retry { .. } => "retry",
                    Settled::Dead { reason, .. } => reason.as_str(),
                    _ => "other",
                };
                if settled != "done" {
                    let id = delivery.message_id().unwrap_or("?");
                    log(format_args!("{id}: {settled}: {detail}"));
                }
                let settled = KeyValue::new("settled", settled);
                self.messages.add(1, &[queue(topology.queue()), settled]);
            }
            ConsumerEvent::Died { why, .. } => log(why),
            _ => {}
        }
    }

    pub(crate) fn deadlock(&self) {
        self.deadlocks.add(1, &[]);
    }
}

impl Listener for Counts {
    fn alert(&self, alert: &Alert) {
        let detail = alert.detail.as_ref().map_or("", |detail| detail.as_str());
        log(format_args!("{}: {detail}", alert.kind.as_str()));
        let reason = KeyValue::new("reason", alert.kind.as_str());
        self.alerts.add(alert.count, &[reason]);
    }

    fn compensated(&self, watchdog: &str, sagas: u64) {
        let watchdog = KeyValue::new("watchdog", watchdog.to_owned());
        self.compensated.add(sagas, &[watchdog]);
    }
}
