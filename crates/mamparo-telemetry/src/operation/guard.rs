//! One operation that has begun and not yet ended.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use mamparo_core::clock::Instant;
use mamparo_core::{BoxError, Dependency, LayerKind, Scope, Settle, Verdict, clock};
use opentelemetry::KeyValue;

use super::layer::Shared;
use super::role::{Before, Kept, Role};
use crate::metrics::{Instruments, OperationLabels};
use crate::noted::{NOTED, noted};
use crate::outcome::{Ended, Measured, Outcome};
use crate::semconv::{DEPENDENCY, OPERATION_ATTEMPTS, OPERATION_ID, OPERATION_OUTCOME};
use crate::source::{Started, within};

/// Holds an operation open until its answer is over; dropped before that, the operation was cancelled.
pub struct OperationGuard<K: Kept> {
    scope: Scope,
    began: Instant,
    span: Option<Started>,
    instruments: Option<Arc<Instruments>>,
    kept: K,
    ended: bool,
}

impl<K: Kept> OperationGuard<K> {
    pub(super) fn begin<P, R, Req>(shared: &Shared<P, R>, request: &Req) -> Self
    where
        R: Role<Req, Kept = K>,
    {
        let now = clock::now();
        let mut scope = Scope::join(LayerKind::Operation, shared.dependency);
        scope.set_started(now);
        let ask = shared.pulse.is_due(now);
        let before = shared.role.before(request, shared.dependency);
        let name = || before.name();
        let describe = || before.attributes(ATTRIBUTES);
        let span = shared.spans.start(ask, name, R::KIND, describe);
        let instruments = shared.meters.find(|| ask).cloned();
        // A limit of its own is the same for each operation: only what was inherited is worth measuring.
        if let (Some(instruments), Some(inherited)) = (&instruments, scope.deadline()) {
            let remaining = inherited.remaining(now).as_secs_f64();
            let by_dependency = &[KeyValue::new(DEPENDENCY, scope.dependency().as_str())];
            let histogram = &instruments.deadline_remaining;
            histogram.record(remaining, by_dependency);
        }
        Self {
            scope,
            began: now,
            kept: before.kept(instruments.is_some()),
            span,
            instruments,
            ended: false,
        }
    }

    /// Makes the operation and its span current while `f` runs.
    #[inline]
    pub(super) fn enter<R>(&mut self, f: impl FnOnce() -> R) -> R {
        let span = self.span.as_ref().and_then(Started::context);
        self.scope.enter(|| within(span, f))
    }

    pub(super) fn fail(&mut self, verdict: Verdict, error: &BoxError) {
        self.end(Ended::Error(verdict, error));
    }

    fn end(&mut self, ended: Ended<'_>) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        let recorded = self.span.as_ref().and_then(Started::recorded);
        if recorded.is_none() && self.instruments.is_none() {
            return;
        }
        let outcome = &self.kept.outcome(ended);
        let elapsed = clock::now().saturating_duration_since(self.began);
        if let Some(instruments) = &self.instruments {
            self.count(instruments, outcome, elapsed);
            let measured = Measured {
                instruments,
                dependency: self.scope.dependency(),
                outcome,
                elapsed,
            };
            self.kept
                .measure(measured, || self.scope.context().resends());
        }
        if let Some(span) = recorded {
            let attempts = i64::from(self.scope.sends());
            let attributes = [
                KeyValue::new(OPERATION_ATTEMPTS, attempts),
                KeyValue::new(OPERATION_OUTCOME, outcome.name),
            ];
            let id = self.scope.operation().map(|id| id.to_string());
            let id = id.map(|id| KeyValue::new(OPERATION_ID, id));
            let noted = noted(&self.scope.context());
            let own = self.kept.attribute(outcome);
            let attributes = attributes.into_iter().chain(own).chain(id).chain(noted);
            span.end(elapsed, attributes, outcome.error.clone());
        }
    }

    fn count(&self, instruments: &Instruments, outcome: &Outcome, elapsed: Duration) {
        let dependency = self.scope.dependency();
        let labels = OperationLabels {
            dependency,
            outcome: outcome.name,
        };
        instruments
            .operations
            .record(&labels, elapsed.as_secs_f64());
        if self.was_resent() {
            let by_dependency = &[KeyValue::new(DEPENDENCY, dependency.as_str())];
            instruments.resent_operations.add(1, by_dependency);
            if outcome.is_success() {
                instruments.recovered_operations.add(1, by_dependency);
            }
        }
    }

    /// Sends are counted right before an HTTP transport only; elsewhere the retry's own word is enough.
    fn was_resent(&self) -> bool {
        self.scope.sends() > 1 || self.scope.has_resent_inside()
    }
}

impl<K: Kept> fmt::Debug for OperationGuard<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OperationGuard")
            .field("scope", &self.scope)
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}

/// Id, attempts, outcome, type of error, and what was noted.
const ATTRIBUTES: usize = 4 + NOTED;

impl<K: Kept> Settle for OperationGuard<K> {
    fn settle(&mut self, verdict: Verdict) {
        self.end(Ended::Answer(verdict));
    }

    fn around<R>(&mut self, poll: impl FnOnce() -> R) -> R {
        self.enter(poll)
    }
}

impl<K: Kept> Drop for OperationGuard<K> {
    fn drop(&mut self) {
        if !self.ended {
            self.end(Ended::dropped(self.scope.deadline()));
        }
    }
}

/// Returns the name of a dependency's operation spans. Dependencies are bounded in number, so these are too.
pub(super) fn span_name(dependency: Dependency) -> &'static str {
    static NAMES: LazyLock<Mutex<HashMap<Dependency, &'static str>>> =
        LazyLock::new(Mutex::default);
    if dependency == Dependency::UNNAMED {
        return "mamparo.operation";
    }
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    names
        .entry(dependency)
        .or_insert_with(|| Box::leak(format!("mamparo.operation {dependency}").into_boxed_str()))
}
