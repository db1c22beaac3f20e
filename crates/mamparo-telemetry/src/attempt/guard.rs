//! One attempt that was sent and is not yet over.

use std::fmt;
use std::sync::Arc;

use http::{Request, StatusCode, Version};
use mamparo_core::clock::{self, Instant};
use mamparo_core::{BoxError, CallContext, Deadline, Dependency, Settle, Verdict};
use opentelemetry::Context;
use opentelemetry::trace::SpanKind;

use super::layer::Shared;
use super::send::{Answered, Sending, Sent};
use crate::metrics::Instruments;
use crate::outcome::Outcome;
use crate::source::{Recorded, Started, within};

/// Holds an attempt open until its answer is over; dropped before that, it was cut or cancelled.
///
/// Where there is nothing to hold, there is nothing in it.
pub struct AttemptGuard {
    // Boxed: it is moved into the future, out of it and into the body, mostly empty.
    open: Option<Box<Open>>,
}

struct Open {
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
        let sending = Sending::new(request, &shared.servers, shared.dependency, resend_count);
        let ask = shared.pulse.is_due(now);
        let name = || sending.span_name();
        let describe = || sending.span_attributes();
        let span = shared.spans.start(ask, name, SpanKind::Client, describe);
        let instruments = shared.meters.find(|| ask);
        let measure = instruments
            .filter(|_| !Context::is_current_telemetry_suppressed())
            .map(|instruments| Measure {
                instruments: Arc::clone(instruments),
                sent: sending.sent(),
            });
        if let Some(span) = &span {
            shared.propagation.inject(ask, span, request.headers_mut());
        }
        let span = span.filter(Started::lasts);
        if span.is_none() && measure.is_none() {
            return Self { open: None };
        }
        let context = CallContext::current();
        let cuts = [context.attempt_cut(), context.deadline()];
        let open = Box::new(Open {
            span,
            measure,
            dependency: shared.dependency,
            began: now,
            cut: cuts.into_iter().flatten().min(),
            answered: None,
        });
        Self { open: Some(open) }
    }

    /// Makes the attempt's span current while `f` runs.
    #[inline]
    pub(super) fn enter<R>(&self, f: impl FnOnce() -> R) -> R {
        let span = self.open.as_ref().and_then(|open| open.span.as_ref());
        within(span.and_then(Started::context), f)
    }

    /// Tells whether anybody would hear of the end.
    pub(super) fn is_heard(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.is_heard())
    }

    pub(super) fn answered(&mut self, status: StatusCode, version: Version) {
        if let Some(open) = &mut self.open {
            open.answered = Some(Answered { status, version });
        }
    }

    pub(super) fn fail(&mut self, verdict: Verdict, error: &BoxError) {
        if let Some(open) = self.open.take() {
            open.end(&Outcome::error(verdict, error));
        }
    }
}

impl Open {
    fn recorded(&self) -> Option<&Recorded> {
        self.span.as_ref().and_then(Started::recorded)
    }

    fn is_heard(&self) -> bool {
        self.recorded().is_some() || self.measure.is_some()
    }

    fn end(self, outcome: &Outcome) {
        if !self.is_heard() {
            return;
        }
        let elapsed = clock::now().saturating_duration_since(self.began);
        if let Some(span) = self.recorded() {
            let attributes = Answered::attributes(self.answered);
            span.end(elapsed, attributes, outcome.error.clone());
        }
        if let Some(Measure { instruments, sent }) = self.measure {
            let labels = sent.labels(self.dependency, self.answered, outcome);
            instruments.attempts.record(&labels, elapsed.as_secs_f64());
        }
    }
}

impl Settle for AttemptGuard {
    #[inline]
    fn settle(&mut self, verdict: Verdict) {
        if let Some(open) = self.open.take() {
            let status = open.answered.map(|answered| answered.status);
            open.end(&Outcome::answer(verdict, status));
        }
    }
}

impl Drop for AttemptGuard {
    #[inline]
    fn drop(&mut self) {
        if let Some(open) = self.open.take() {
            let outcome = Outcome::dropped(open.cut);
            open.end(&outcome);
        }
    }
}

impl fmt::Debug for AttemptGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AttemptGuard")
            .field("open", &self.open.is_some())
            .finish_non_exhaustive()
    }
}
