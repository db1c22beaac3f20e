//! The record of a call, for programs: what `--json` writes.

use std::collections::BTreeMap;
use std::time::SystemTime;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use mamparo_telemetry::semconv::ERROR_TYPE;
use opentelemetry_sdk::trace::SpanData;
use serde::Serialize;

use super::about::{About, Answered};
use super::deliver::Answer;
use super::ending::{Came, Ended};
use super::report::why;
use crate::exit::Exit;
use crate::trace::{Kept, Refusal, Status, Wait, attempt, ms, resend_count, since, status, text};

/// All that is known of a call.
#[derive(Debug, Serialize)]
pub(super) struct Record<'a, W> {
    outcome: Exit,
    exit_code: u8,
    dependency: &'a str,
    method: &'a str,
    url: &'a str,
    trace_id: Option<String>,
    elapsed_ms: Option<f64>,
    ending: Ending,
    attempts: Vec<Attempt<'a>>,
    waits: Vec<Waited>,
    rejections: Vec<Rejected>,
    not_hedged: Option<&'static str>,
    fallback: Option<FellBack>,
    error: Option<&'a str>,
    #[serde(flatten)]
    answer: Option<W>,
}

#[derive(Debug, Serialize)]
struct Ending {
    attempts: u32,
    not_resent: Option<&'static str>,
    indeterminate: bool,
}

/// One physical send.
#[derive(Debug, Serialize)]
struct Attempt<'a> {
    number: i64,
    resend_count: Option<i64>,
    span_id: String,
    started_ms: f64,
    duration_ms: f64,
    status: Option<Status>,
    error_type: Option<&'a str>,
    /// Whether it was sent as a hedge: beside another, or at once for one that failed.
    hedge: bool,
}

/// An attempt that a layer refused to send.
#[derive(Debug, Serialize)]
struct Rejected {
    attempt: u32,
    at_ms: f64,
    reason: &'static str,
    retry_after_ms: Option<f64>,
}

/// The mark of an answer that is not the server's.
#[derive(Debug, Serialize)]
struct FellBack {
    instead_of: &'static str,
}

#[derive(Debug, Serialize)]
struct Waited {
    before_attempt: u32,
    started_ms: f64,
    duration_ms: f64,
    reason: &'static str,
    hinted: bool,
}

/// What is written of an answer of HTTP.
#[derive(Debug, Serialize)]
pub(super) struct Written {
    status: u16,
    headers: BTreeMap<String, Vec<String>>,
    body: String,
    body_encoding: &'static str,
    body_length: u64,
    body_truncated: bool,
}

impl<'a, W> Record<'a, W> {
    pub(super) fn new(
        about: &'a About,
        kept: &'a Kept,
        came: &Came<impl Answered<Record = W>>,
        ended: &'a Ended,
    ) -> Self {
        let root = kept.roots().into_iter().next();
        let attempts = root.map(|root| {
            let spans = kept.attempts(root).into_iter();
            spans.map(|span| attempted(span, root, kept)).collect()
        });
        let waits = root.map(|root| {
            let waits = kept.waits(root).into_iter();
            waits.map(|(at, wait)| waited(at, wait, root)).collect()
        });
        let rejections = root.map(|root| {
            let refusals = kept.refusals(root).into_iter();
            refusals
                .map(|(at, refusal)| rejected(at, refusal, root))
                .collect()
        });
        let instead_of = came.as_ref().ok().and_then(Answered::instead_of);
        Self {
            outcome: ended.exit,
            exit_code: ended.exit.code(),
            dependency: about.dependency.as_str(),
            method: &about.method,
            url: &about.url,
            trace_id: root.map(|root| root.span_context.trace_id().to_string()),
            elapsed_ms: root.map(|root| ms(since(root.start_time, root.end_time))),
            ending: Ending {
                attempts: ended.attempts,
                not_resent: ended
                    .ending
                    .and_then(|e| e.not_resent())
                    .map(|r| r.as_str()),
                indeterminate: ended.exit == Exit::Indeterminate,
            },
            attempts: attempts.unwrap_or_default(),
            waits: waits.unwrap_or_default(),
            rejections: rejections.unwrap_or_default(),
            not_hedged: root
                .and_then(|root| kept.not_hedged(root))
                .map(|reason| reason.as_str()),
            fallback: instead_of.map(|failed| FellBack {
                instead_of: why(failed),
            }),
            error: ended.error.as_deref(),
            answer: came.as_ref().ok().map(Answered::record),
        }
    }
}

fn attempted<'a>(span: &'a SpanData, root: &SpanData, kept: &Kept) -> Attempt<'a> {
    let number = attempt(span);
    Attempt {
        number,
        hedge: kept.is_hedge(root, number),
        resend_count: resend_count(span),
        span_id: span.span_context.span_id().to_string(),
        started_ms: ms(since(root.start_time, span.start_time)),
        duration_ms: ms(since(span.start_time, span.end_time)),
        status: status(span),
        error_type: text(span, ERROR_TYPE),
    }
}

fn waited(at: SystemTime, wait: &Wait, root: &SpanData) -> Waited {
    Waited {
        before_attempt: wait.before,
        started_ms: ms(since(root.start_time, at)),
        duration_ms: ms(wait.length),
        reason: wait.reason.as_str(),
        hinted: wait.reason.is_hinted(),
    }
}

fn rejected(at: SystemTime, refusal: &Refusal, root: &SpanData) -> Rejected {
    Rejected {
        attempt: refusal.attempt,
        at_ms: ms(since(root.start_time, at)),
        reason: refusal.reason.as_str(),
        retry_after_ms: refusal.retry_after.map(ms),
    }
}

impl Written {
    pub(super) fn of(answer: &Answer) -> Self {
        let (body, body_encoding) = match std::str::from_utf8(&answer.kept) {
            Ok(text) => (text.to_owned(), "utf8"),
            Err(_) => (STANDARD.encode(&answer.kept), "base64"),
        };
        Self {
            status: answer.status.as_u16(),
            headers: headers(&answer.headers),
            body,
            body_encoding,
            body_length: answer.length,
            body_truncated: answer.length > answer.kept.len() as u64,
        }
    }
}

/// All values of each name.
pub(super) fn headers(headers: &HeaderMap) -> BTreeMap<String, Vec<String>> {
    let mut all = BTreeMap::<String, Vec<String>>::new();
    for (name, value) in headers {
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        all.entry(name.to_string()).or_default().push(value);
    }
    all
}
