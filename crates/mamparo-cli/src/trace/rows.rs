//! One row per operation, attempt and wait, in order of time.

use std::time::{Duration, SystemTime};

use mamparo_telemetry::semconv::{
    DEPENDENCY, ERROR_TYPE, HTTP_REQUEST_RESEND_COUNT, HTTP_RESPONSE_STATUS_CODE, OPERATION_OUTCOME,
};
use opentelemetry::trace::SpanKind;
use opentelemetry_sdk::trace::SpanData;

use super::recorder::{Kept, Wait};
use super::span::{number, since, text};

/// A trace deeper than this is cut off.
const MAX_DEPTH: usize = 16;

/// One line of a waterfall.
#[derive(Debug)]
pub(crate) struct Row {
    pub(super) label: String,
    pub(super) mark: Mark,
    /// After the beginning of the first row.
    pub(super) start: Duration,
    pub(super) length: Duration,
    pub(super) says: String,
}

/// How a row is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    Whole,
    Good,
    Bad,
    Wait,
}

/// What stands below a span: another one, or a wait.
enum Below<'a> {
    Span(&'a SpanData),
    Wait(&'a Wait),
}

/// Returns the rows of a span and of all below it.
pub(crate) fn rows(kept: &Kept, root: &SpanData) -> Vec<Row> {
    let mut rows = Vec::new();
    push(&mut rows, kept, root, root.start_time, 0);
    rows
}

fn push(rows: &mut Vec<Row>, kept: &Kept, span: &SpanData, zero: SystemTime, depth: usize) {
    rows.push(Row {
        label: indented(depth, &label(span)),
        mark: mark(span),
        start: since(zero, span.start_time),
        length: since(span.start_time, span.end_time),
        says: says(span),
    });
    if depth >= MAX_DEPTH {
        return;
    }
    let spans = kept.below(span).into_iter().map(Below::Span);
    let mut below: Vec<_> = spans
        .chain(kept.waits(span).into_iter().map(Below::Wait))
        .collect();
    below.sort_by_key(Below::at);
    for below in below {
        match below {
            Below::Span(span) => push(rows, kept, span, zero, depth + 1),
            Below::Wait(wait) => rows.push(waiting(wait, zero, depth + 1)),
        }
    }
}

impl Below<'_> {
    const fn at(&self) -> SystemTime {
        match self {
            Self::Span(span) => span.start_time,
            Self::Wait(wait) => wait.at,
        }
    }
}

fn waiting(wait: &Wait, zero: SystemTime, depth: usize) -> Row {
    let why = if wait.hinted {
        "the server asked for it"
    } else {
        "backoff"
    };
    Row {
        label: indented(depth, "wait"),
        mark: Mark::Wait,
        start: since(zero, wait.at),
        length: wait.length,
        says: format!("{}: {why}", wait.reason.as_str()),
    }
}

fn indented(depth: usize, label: &str) -> String {
    format!("{:indent$}{label}", "", indent = depth * 2)
}

fn label(span: &SpanData) -> String {
    match span.span_kind {
        SpanKind::Client => {
            let resends = number(span, HTTP_REQUEST_RESEND_COUNT).unwrap_or(0);
            format!("attempt {}", resends + 1)
        }
        SpanKind::Internal => text(span, DEPENDENCY).unwrap_or(&span.name).to_owned(),
        _ => span.name.clone().into_owned(),
    }
}

fn mark(span: &SpanData) -> Mark {
    if text(span, ERROR_TYPE).is_some() {
        Mark::Bad
    } else if span.span_kind == SpanKind::Client {
        Mark::Good
    } else {
        Mark::Whole
    }
}

/// An operation's outcome; or a send's status, error and number of the resend.
fn says(span: &SpanData) -> String {
    if let Some(outcome) = text(span, OPERATION_OUTCOME) {
        return outcome.to_owned();
    }
    let status = number(span, HTTP_RESPONSE_STATUS_CODE).map(|status| status.to_string());
    let error = text(span, ERROR_TYPE).filter(|&error| status.as_deref() != Some(error));
    let error = error.map(str::to_owned);
    let resend = number(span, HTTP_REQUEST_RESEND_COUNT).map(|count| format!("resend {count}"));
    let said = [status, error, resend].into_iter().flatten();
    said.collect::<Vec<_>>().join(", ")
}
