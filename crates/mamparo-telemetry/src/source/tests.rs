use std::sync::{Arc, Mutex};
use std::time::Duration;

use mamparo_core::clock;
use opentelemetry::trace::{
    Link, SpanContext, SpanId, SpanKind, TraceContextExt, TraceFlags, TraceId, TraceState, Tracer,
    TracerProvider,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::trace::{SamplingDecision, SamplingResult, ShouldSample};

use super::*;
use crate::testing::Kept;

#[test]
fn one_caller_is_let_through_in_each_interval() {
    let pulse = Pulse::new();
    let now = clock::now();
    assert!(pulse.is_due(now));
    assert!(!pulse.is_due(now));
    assert!(!pulse.is_due(now + RECHECK - Duration::from_micros(1)));
    assert!(pulse.is_due(now + RECHECK));
    assert!(!pulse.is_due(now + RECHECK));
}

/// Decides one way, and notes how many attributes it was asked with.
#[derive(Clone, Debug)]
struct Asked(SamplingDecision, Arc<Mutex<Vec<usize>>>);

impl ShouldSample for Asked {
    fn should_sample(
        &self,
        _: Option<&Context>,
        _: TraceId,
        _: &str,
        _: &SpanKind,
        attributes: &[KeyValue],
        _: &[Link],
    ) -> SamplingResult {
        self.1.lock().unwrap().push(attributes.len());
        SamplingResult {
            decision: self.0.clone(),
            attributes: Vec::new(),
            trace_state: TraceState::NONE,
        }
    }
}

/// Starts a span below `above`, and returns how the sampler was asked.
fn asked(above: &Context, decision: SamplingDecision, offers_all: bool) -> Vec<usize> {
    let asked = Asked(decision, Arc::default());
    let kept = Kept::sampled(asked.clone());
    let mut spans = Spans::global();
    spans.give(&kept.provider);
    if offers_all {
        spans.offer_all();
    }
    let describe = || vec![KeyValue::new("url.full", "http://catalog/")];
    let _above = above.clone().attach();
    let started = spans.start(false, || "GET", SpanKind::Client, describe);
    assert!(started.is_some(), "there is always an identity to send");
    asked.1.lock().unwrap().clone()
}

fn above(flags: TraceFlags, is_remote: bool) -> Context {
    let (trace, span) = (TraceId::from(0xabc), SpanId::from(0xdef));
    let identity = SpanContext::new(trace, span, flags, is_remote, TraceState::NONE);
    Context::new().with_remote_span_context(identity)
}

#[test]
fn what_our_sampler_refused_above_is_not_offered_to_it_again() {
    let refused = above(TraceFlags::NOT_SAMPLED, false);
    let records = || SamplingDecision::RecordAndSample;
    assert_eq!(asked(&refused, records(), false), [0_usize; 0]);
    assert_eq!(asked(&refused, records(), true), [1], "with attributes");
}

#[test]
fn what_another_process_did_not_sample_is_offered_to_ours_without_attributes() {
    let theirs = above(TraceFlags::NOT_SAMPLED, true);
    let records = || SamplingDecision::RecordAndSample;
    assert_eq!(asked(&theirs, records(), false), [0]);
    assert_eq!(asked(&theirs, records(), true), [1]);
}

#[test]
fn whatever_may_be_recorded_is_offered_to_the_sampler() {
    for context in [
        Context::new(),
        above(TraceFlags::SAMPLED, false),
        above(TraceFlags::SAMPLED, true),
    ] {
        assert_eq!(asked(&context, SamplingDecision::Drop, false), [1]);
    }
}

/// A span that records although it is not sampled was not refused.
#[test]
fn below_a_span_that_only_records_the_sampler_is_asked() {
    let kept = Kept::sampled(Asked(SamplingDecision::RecordOnly, Arc::default()));
    let records = kept.provider.tracer("above").start("above");
    let records = Context::new().with_span(records);
    assert_eq!(asked(&records, SamplingDecision::RecordOnly, false), [0]);
}
