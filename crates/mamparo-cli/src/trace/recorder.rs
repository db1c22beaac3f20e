//! Keeping what the layers write, in this process.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use mamparo_core::clock::{SystemClock, WallClock};
use mamparo_core::{Event, NotResent, Observer};
use mamparo_telemetry::semconv::OPERATION_ID;
use opentelemetry::Context;
use opentelemetry::trace::SpanId;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{Span, SpanData, SpanProcessor};

use super::notes::{Note, Noted, Refusal, Wait};
use super::span::{is_attempt, text};

/// As many spans, and as many notes, as are kept.
const MAX_KEPT: usize = 50_000;

/// Keeps every span that ends and what the layers say of what lies between; a clone keeps in the same place.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recorder(Arc<Mutex<Kept>>);

/// What was kept.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kept {
    pub(crate) spans: Vec<SpanData>,
    pub(crate) notes: Vec<Note>,
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
        below.retain(|span| is_attempt(span));
        below
    }

    /// Returns what was noted of an operation.
    pub(super) fn notes(&self, operation: &SpanData) -> impl Iterator<Item = &Note> {
        let id = text(operation, OPERATION_ID);
        let own = move |note: &&Note| id == Some(&*note.operation);
        self.notes.iter().filter(own)
    }

    /// Returns the waits of an operation, and when each began.
    pub(crate) fn waits(&self, operation: &SpanData) -> Vec<(SystemTime, &Wait)> {
        let notes = self.notes(operation);
        let waits = notes.filter_map(|note| match &note.what {
            Noted::Wait(wait) => Some((note.began(), wait)),
            _ => None,
        });
        waits.collect()
    }

    /// Returns what of an operation was refused, and when.
    pub(crate) fn refusals(&self, operation: &SpanData) -> Vec<(SystemTime, &Refusal)> {
        let notes = self.notes(operation);
        let refusals = notes.filter_map(|note| match &note.what {
            Noted::Refusal(refusal) => Some((note.said, refusal)),
            _ => None,
        });
        refusals.collect()
    }

    /// Tells whether any attempt of an operation was sent beside another.
    pub(crate) fn is_hedged(&self, operation: &SpanData) -> bool {
        let mut notes = self.notes(operation);
        notes.any(|note| matches!(note.what, Noted::Hedge(_)))
    }

    /// Returns why an operation that was to be hedged is not.
    pub(crate) fn not_hedged(&self, operation: &SpanData) -> Option<NotResent> {
        let mut notes = self.notes(operation);
        notes.find_map(|note| match note.what {
            Noted::NoHedge(reason) => Some(reason),
            _ => None,
        })
    }

    /// Tells whether the attempt of this number was sent beside another.
    pub(crate) fn is_hedge(&self, operation: &SpanData, number: i64) -> bool {
        let mut notes = self.notes(operation);
        notes.any(|note| matches!(note.what, Noted::Hedge(hedge) if hedge == number))
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
        let Some(note) = Note::of(event, SystemClock.now()) else {
            return;
        };
        self.with(|kept| {
            if kept.notes.len() < MAX_KEPT {
                kept.notes.push(note);
            }
        });
    }
}
