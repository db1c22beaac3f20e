//! Keeping what the layers write, in this process.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use mamparo_core::clock::{SystemClock, WallClock};
use mamparo_core::{Event, Kind, Observer, What};
use mamparo_telemetry::semconv::OPERATION_ID;
use opentelemetry::Context;
use opentelemetry::trace::{SpanId, SpanKind};
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{Span, SpanData, SpanProcessor};

use super::span::text;

/// As many spans, and as many waits, as are kept.
const MAX_KEPT: usize = 50_000;

/// Keeps every span that ends and every wait that is scheduled; a clone keeps in the same place.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recorder(Arc<Mutex<Kept>>);

/// What was kept.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kept {
    pub(crate) spans: Vec<SpanData>,
    pub(crate) waits: Vec<Wait>,
}

/// A wait before a resend.
#[derive(Clone, Debug)]
pub(crate) struct Wait {
    /// The id of its operation.
    pub(crate) operation: String,
    /// The attempt that it is for: 2 for the first resend.
    pub(crate) before: u32,
    pub(crate) at: SystemTime,
    pub(crate) length: Duration,
    /// How the attempt before it failed.
    pub(crate) reason: Kind,
    /// Whether the dependency asked for it.
    pub(crate) hinted: bool,
}

impl Recorder {
    /// Returns all that was kept so far.
    pub(crate) fn kept(&self) -> Kept {
        self.with(|kept| kept.clone())
    }

    fn with<R>(&self, f: impl FnOnce(&mut Kept) -> R) -> R {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Kept {
    /// Returns the operations that nothing is above, in the order in which they began.
    pub(crate) fn roots(&self) -> Vec<&SpanData> {
        let mut roots: Vec<_> = self
            .spans
            .iter()
            .filter(|span| span.parent_span_id == SpanId::INVALID)
            .collect();
        roots.sort_by_key(|span| span.start_time);
        roots
    }

    /// Returns the spans right below this one, in the order in which they began.
    pub(crate) fn below(&self, span: &SpanData) -> Vec<&SpanData> {
        let (trace, id) = (span.span_context.trace_id(), span.span_context.span_id());
        let mut below: Vec<_> = self
            .spans
            .iter()
            .filter(|s| s.parent_span_id == id && s.span_context.trace_id() == trace)
            .collect();
        below.sort_by_key(|span| span.start_time);
        below
    }

    /// Returns the attempts of an operation.
    pub(crate) fn attempts(&self, operation: &SpanData) -> Vec<&SpanData> {
        let mut below = self.below(operation);
        below.retain(|span| span.span_kind == SpanKind::Client);
        below
    }

    /// Returns the waits of an operation.
    pub(crate) fn waits(&self, operation: &SpanData) -> Vec<&Wait> {
        let id = text(operation, OPERATION_ID).unwrap_or_default();
        self.waits
            .iter()
            .filter(|wait| wait.operation == id)
            .collect()
    }
}

impl SpanProcessor for Recorder {
    fn on_start(&self, _: &mut Span, _: &Context) {}

    fn on_end(&self, span: SpanData) {
        self.with(|kept| {
            if kept.spans.len() < MAX_KEPT {
                kept.spans.push(span);
            }
        });
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }
}

impl Observer for Recorder {
    fn on(&self, event: &Event<'_>) {
        let What::ResendScheduled {
            next,
            reason,
            wait,
            hinted,
            ..
        } = event.what
        else {
            return;
        };
        let Some(operation) = event.context.operation() else {
            return;
        };
        let wait = Wait {
            operation: operation.to_string(),
            before: next,
            at: SystemClock.now(),
            length: wait,
            reason,
            hinted,
        };
        self.with(|kept| {
            if kept.waits.len() < MAX_KEPT {
                kept.waits.push(wait);
            }
        });
    }
}
