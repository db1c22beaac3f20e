//! One exchange that has begun and is not yet over.

use std::fmt;
use std::sync::Arc;

use http::{Request, Response};
use mamparo_core::clock::{self, Instant};
use mamparo_core::{BoxError, CallContext, Deadline, Dependency, Settle, Verdict};
use opentelemetry::Context;

use super::role::{Before, Heard, Kept, Role};
use super::shared::Shared;
use crate::metrics::Instruments;
use crate::outcome::{Ended, Measured};
use crate::source::{Recorded, Started, within};

/// Holds an exchange open until its answer is over; dropped before that, it was cut or cancelled.
///
/// Where there is nothing to hold, there is nothing in it.
pub struct ExchangeGuard<R: Role> {
    // Boxed: it is moved into the future, out of it and into the body, mostly empty.
    open: Option<Box<Open<R::Kept>>>,
}

/// A span, what its end must know, and where that is measured.
type Looked<K> = (Option<Started>, Option<K>, Option<Arc<Instruments>>);

struct Open<K> {
    span: Option<Started>,
    /// None where nobody hears of the end.
    kept: Option<K>,
    instruments: Option<Arc<Instruments>>,
    dependency: Dependency,
    began: Instant,
    /// When whoever drops this cuts it, rather than cancels it.
    cut: Option<Deadline>,
}

impl<R: Role> ExchangeGuard<R> {
    pub(super) fn begin<P, A>(shared: &Shared<P, R>, request: &mut Request<A>) -> Self {
        let now = clock::now();
        let ask = shared.pulse.is_due(now);
        let (span, kept, instruments) = Self::look(shared, ask, request);
        if let (Some(span), false) = (&span, R::SERVES) {
            shared.propagation.inject(ask, span, request.headers_mut());
        }
        let span = span.filter(Started::lasts);
        if span.is_none() && kept.is_none() {
            return Self { open: None };
        }
        let context = CallContext::current();
        let cuts = [context.attempt_cut(), context.deadline()];
        let open = Box::new(Open {
            span,
            kept,
            instruments,
            dependency: shared.dependency,
            began: now,
            cut: cuts.into_iter().flatten().min(),
        });
        Self { open: Some(open) }
    }

    /// Starts the span, and keeps what its end and a measurement must know.
    fn look<P, A>(shared: &Shared<P, R>, ask: bool, request: &Request<A>) -> Looked<R::Kept> {
        let before = shared.role.before(request, shared.dependency);
        let name = || before.name();
        let describe = || before.attributes();
        let span = if R::SERVES {
            let extract = || shared.propagation.extract(ask, request.headers());
            let caller = shared.spans.may_start(ask).then(extract).flatten();
            (shared.spans).start_below(ask, caller.as_ref(), name, R::KIND, describe)
        } else {
            shared.spans.start(ask, name, R::KIND, describe)
        };
        let instruments = shared.meters.find(|| ask);
        let instruments = instruments.filter(|_| !Context::is_current_telemetry_suppressed());
        let records = span.as_ref().and_then(Started::recorded).is_some();
        let kept = (records || instruments.is_some()).then(|| before.kept(instruments.is_some()));
        (span, kept, instruments.cloned())
    }

    /// Makes the span current while `f` runs.
    #[inline]
    pub(super) fn enter<T>(&self, f: impl FnOnce() -> T) -> T {
        let span = self.open.as_ref().and_then(|open| open.span.as_ref());
        within(span.and_then(Started::context), f)
    }

    /// Tells whether anybody would hear of the end.
    pub(super) fn is_heard(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.kept.is_some())
    }

    pub(super) fn answered<B>(&mut self, response: &Response<B>) {
        let kept = self.open.as_mut().and_then(|open| open.kept.as_mut());
        if let Some(kept) = kept {
            kept.hear(Heard {
                status: response.status(),
                version: response.version(),
                headers: response.headers(),
            });
        }
    }

    pub(super) fn fail(&mut self, verdict: Verdict, error: &BoxError) {
        self.end(Ended::Error(verdict, error));
    }

    #[inline]
    fn end(&mut self, ended: Ended<'_>) {
        if let Some(open) = self.open.take() {
            open.end(ended);
        }
    }
}

impl<K: Kept> Open<K> {
    fn recorded(&self) -> Option<&Recorded> {
        self.span.as_ref().and_then(Started::recorded)
    }

    fn end(mut self, ended: Ended<'_>) {
        let Some(mut kept) = self.kept.take() else {
            return;
        };
        let outcome = kept.outcome(ended);
        let elapsed = clock::now().saturating_duration_since(self.began);
        if let Some(span) = self.recorded() {
            if let Some(name) = kept.name() {
                span.rename(name);
            }
            span.end(elapsed, kept.attributes(&outcome), outcome.error.clone());
        }
        if let Some(instruments) = &self.instruments {
            kept.measure(Measured {
                instruments,
                dependency: self.dependency,
                outcome: &outcome,
                elapsed,
            });
        }
    }
}

impl<R: Role> Settle for ExchangeGuard<R> {
    #[inline]
    fn settle(&mut self, verdict: Verdict) {
        self.end(Ended::Answer(verdict));
    }

    #[inline]
    fn around<T>(&mut self, poll: impl FnOnce() -> T) -> T {
        if R::SERVES { self.enter(poll) } else { poll() }
    }
}

impl<R: Role> Drop for ExchangeGuard<R> {
    #[inline]
    fn drop(&mut self) {
        if let Some(open) = self.open.take() {
            let ended = Ended::dropped(open.cut);
            open.end(ended);
        }
    }
}

impl<R: Role> fmt::Debug for ExchangeGuard<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExchangeGuard")
            .field("open", &self.open.is_some())
            .finish_non_exhaustive()
    }
}
