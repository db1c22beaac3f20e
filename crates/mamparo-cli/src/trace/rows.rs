//! One row per operation, attempt and wait, in order of time.

use std::time::{Duration, SystemTime};

use mamparo_core::event::FallbackEnd;
use mamparo_telemetry::semconv::{DEPENDENCY, ERROR_TYPE, OPERATION_OUTCOME};
use opentelemetry_sdk::trace::SpanData;

use super::draw::millis;
use super::notes::{Note, Noted, Refusal};
use super::recorder::Kept;
use super::span::{attempt, is_attempt, is_operation, resend_count, since, status, text};

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

/// What stands below a span: another one, or a note.
enum Below<'a> {
    Span(&'a SpanData),
    Note(&'a Note),
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
    let mut below: Vec<_> = spans.chain(kept.notes(span).map(Below::Note)).collect();
    below.sort_by_key(Below::at);
    for below in below {
        match below {
            Below::Span(below) => {
                let at = rows.len();
                push(rows, kept, below, zero, depth + 1);
                if is_attempt(below) && kept.is_hedge(span, attempt(below)) {
                    rows[at].says += ", hedge";
                }
            }
            Below::Note(note) => rows.extend(noted(note, zero, depth + 1)),
        }
    }
}

impl Below<'_> {
    fn at(&self) -> SystemTime {
        match self {
            Self::Span(span) => span.start_time,
            Self::Note(note) => note.began(),
        }
    }
}

/// The row of a note; none for what is said in the row of an attempt.
fn noted(note: &Note, zero: SystemTime, depth: usize) -> Option<Row> {
    let (label, mark, length, says) = match &note.what {
        Noted::Wait(wait) => ("wait", Mark::Wait, wait.length, wait.reason.says()),
        Noted::Refusal(refusal) => ("rejected", Mark::Bad, Duration::ZERO, refused(refusal)),
        Noted::Fallback { instead_of, ended } => {
            let mark = match ended {
                FallbackEnd::Served => Mark::Good,
                _ => Mark::Bad,
            };
            let says = format!("{}, instead of {}", ended.as_str(), instead_of.as_str());
            ("fallback", mark, Duration::ZERO, says)
        }
        Noted::NoHedge(reason) => {
            let why = reason.as_str().replace('_', " ");
            ("no hedge", Mark::Wait, Duration::ZERO, why)
        }
        Noted::Hedge(_) => return None,
    };
    Some(Row {
        label: indented(depth, label),
        mark,
        start: since(zero, note.began()),
        length,
        says,
    })
}

fn refused(refusal: &Refusal) -> String {
    let reason = refusal.reason.as_str().replace('_', " ");
    match refusal.retry_after {
        Some(wait) => format!("{reason}: not sent, again in {}", millis(wait)),
        None => format!("{reason}: not sent"),
    }
}

fn indented(depth: usize, label: &str) -> String {
    format!("{:indent$}{label}", "", indent = depth * 2)
}

fn label(span: &SpanData) -> String {
    if is_attempt(span) {
        format!("attempt {}", attempt(span))
    } else if is_operation(span) {
        text(span, DEPENDENCY).unwrap_or(&span.name).to_owned()
    } else {
        span.name.clone().into_owned()
    }
}

fn mark(span: &SpanData) -> Mark {
    if text(span, ERROR_TYPE).is_some() {
        Mark::Bad
    } else if is_attempt(span) {
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
    let status = status(span).map(|status| status.to_string());
    let error = text(span, ERROR_TYPE).filter(|&error| status.as_deref() != Some(error));
    let error = error.map(str::to_owned);
    let resend = resend_count(span).map(|count| format!("resend {count}"));
    // Nobody waited for its answer any more.
    let dropped = is_attempt(span) && status.is_none() && error.is_none();
    let dropped = dropped.then(|| "cancelled".to_owned());
    let said = [status, error, dropped, resend].into_iter().flatten();
    said.collect::<Vec<_>>().join(", ")
}
