//! One attempt that was sent and is not yet over.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, StatusCode, Version};
use mamparo_core::clock::{self, Instant};
use mamparo_core::{BoxError, CallContext, Deadline, Dependency, Settle, Verdict};
use opentelemetry::trace::SpanKind;
use opentelemetry::{Context, KeyValue};

use super::layer::Shared;
use super::send::{Answered, Sending, Sent};
use crate::metrics::{Attributes, Instruments};
use crate::outcome::Outcome;
use crate::semconv::{
    ATTEMPT_VERDICT, DEPENDENCY, ERROR_TYPE, HTTP_RESPONSE_STATUS_CODE, NETWORK_PROTOCOL_VERSION,
};
use crate::source::{Recorded, Started, within};

/// Holds an attempt open until its answer is over; dropped before that, it was cut or cancelled.
pub struct AttemptGuard {
    span: Option<Started>,
    measure: Option<Measure>,
    dependency: Dependency,
    began: Instant,
    /// When whoever drops this cuts it, rather than cancels it.
    cut: Option<Deadline>,
    answered: Option<Answered>,
}

/// What is needed for a measurement at the end.
struct Measure {
    instruments: Arc<Instruments>,
    sent: Sent,
}

impl AttemptGuard {
    pub(super) fn begin<P, A>(shared: &Shared<P>, request: &mut Request<A>) -> Self {
        // Counted whether or not anybody listens: what is further out relies on it.
        let resend_count = CallContext::count_send(shared.dependency);
        let now = clock::now();
        let sending = Sending::new(request, shared.dependency, resend_count);
        let span = shared
            .spans
            .start(now, sending.span_name(), SpanKind::Client, || {
                sending.span_attributes()
            });
        let instruments = shared.meters.find(|| now);
        let measure = instruments
            .filter(|_| !Context::is_current_telemetry_suppressed())
            .map(|instruments| Measure {
                instruments: Arc::clone(instruments),
                sent: sending.sent(),
            });
        if let Some(span) = &span {
            shared.propagation.inject(now, span, request.headers_mut());
        }
        let context = CallContext::current();
        Self {
            span,
            measure,
            dependency: shared.dependency,
            began: now,
            cut: [context.attempt_cut(), context.deadline()]
                .into_iter()
                .flatten()
                .min(),
            answered: None,
        }
    }

    /// Makes the attempt's span current while `f` runs.
    #[inline]
    pub(super) fn enter<R>(&self, f: impl FnOnce() -> R) -> R {
        within(self.span.as_ref().and_then(Started::context), f)
    }

    pub(super) fn answered(&mut self, status: StatusCode, version: Version) {
        self.answered = Some(Answered { status, version });
    }

    pub(super) fn fail(&mut self, verdict: Verdict, error: &BoxError) {
        if self.is_open() {
            self.end(&Outcome::error(verdict, error));
        }
    }

    /// Without span and measurement there is nothing to say at the end.
    const fn is_open(&self) -> bool {
        self.span.is_some() || self.measure.is_some()
    }

    fn end(&mut self, outcome: &Outcome) {
        let elapsed = clock::now().saturating_duration_since(self.began);
        let (span, measure) = (self.span.take(), self.measure.take());
        if let Some(span) = span.as_ref().and_then(Started::recorded) {
            self.end_span(span, outcome, elapsed);
        }
        if let Some(Measure { instruments, sent }) = measure {
            let attributes = sent.metric_attributes(self.answered, outcome);
            let seconds = elapsed.as_secs_f64();
            let duration = &instruments.request_duration;
            duration.record(seconds, attributes.as_slice());
            let by_verdict = Attributes::<2>::new()
                .with(DEPENDENCY, self.dependency.as_str())
                .with(ATTEMPT_VERDICT, outcome.name);
            instruments.attempts.add(1, by_verdict.as_slice());
        }
    }

    fn end_span(&self, span: &Recorded, outcome: &Outcome, elapsed: Duration) {
        if let Some(answered) = self.answered {
            span.set(KeyValue::new(HTTP_RESPONSE_STATUS_CODE, answered.status()));
            if let Some(version) = answered.version() {
                span.set(KeyValue::new(NETWORK_PROTOCOL_VERSION, version));
            }
        }
        let error = outcome.error.clone();
        span.end(elapsed, error.map(|error| KeyValue::new(ERROR_TYPE, error)));
    }
}

impl Settle for AttemptGuard {
    fn settle(&mut self, verdict: Verdict) {
        if self.is_open() {
            let status = self.answered.map(|answered| answered.status);
            self.end(&Outcome::answer(verdict, status));
        }
    }
}

impl Drop for AttemptGuard {
    fn drop(&mut self) {
        if self.is_open() {
            self.end(&Outcome::dropped(self.cut));
        }
    }
}

impl fmt::Debug for AttemptGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AttemptGuard")
            .field("dependency", &self.dependency)
            .field("open", &self.is_open())
            .finish_non_exhaustive()
    }
}
