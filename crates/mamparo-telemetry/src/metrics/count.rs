//! Which event is counted how.

use mamparo_core::breaker::Transition;
use mamparo_core::{CallContext, Dependency, Kind, Rejection, ShedBy, What};
use opentelemetry::KeyValue;

use super::{Attributes, Instruments};
use crate::semconv::{
    BREAKER_STATE, DEPENDENCY, FALLBACK_OUTCOME, POLICY_OUTCOME, PRIORITY, REASON, REASON_DELAY,
    SENT,
};

impl Instruments {
    pub(super) fn count(&self, context: &CallContext, what: &What<'_>) {
        let dependency = context.dependency();
        match *what {
            What::ResendScheduled { reason, .. } | What::SentTransparently { reason } => {
                self.resends.add(1, &by(dependency, reason.as_str()));
            }
            What::NotResent { reason, .. } => {
                self.refused_resends
                    .add(1, &by(dependency, reason.as_str()));
            }
            What::Rejected(rejection) => self.rejected(context, rejection),
            What::Shadowed(rejection) => {
                let dependency = named(rejection.dependency(), context);
                let reason = rejection.reason().as_str();
                self.shadow_rejections.add(1, &by(dependency, reason));
            }
            What::LateWork { late } => {
                self.late_work.record(late.as_secs_f64(), &[of(dependency)]);
            }
            What::Nested { .. } => self.nested_retries.add(1, &[of(dependency)]),
            What::MalformedDeadline { .. } => self.doubt("malformed"),
            What::DeadlineClamped { .. } => self.doubt("clamped"),
            What::SkewSuspected => self.doubt("skew_suspected"),
            What::BreakerTransition(change) => self.changed(context, change),
            _ => self.count_protected(dependency, what),
        }
    }

    /// Counts what the protecting layers do.
    fn count_protected(&self, dependency: Dependency, what: &What<'_>) {
        match *what {
            What::QueueWaited { waited, .. } => {
                let seconds = waited.as_secs_f64();
                self.bulkhead_wait.record(seconds, &[of(dependency)]);
            }
            What::RateLimitWaited { waited } => {
                let seconds = waited.as_secs_f64();
                self.rate_limit_wait.record(seconds, &[of(dependency)]);
            }
            What::RateLimitHeard { .. } => self.rate_limit_pauses.add(1, &[of(dependency)]),
            What::HedgeSent { reason, .. } => {
                let reason = reason.map_or(REASON_DELAY, Kind::as_str);
                self.hedges.add(1, &by(dependency, reason));
            }
            What::HedgeWon { .. } => self.won_hedges.add(1, &[of(dependency)]),
            What::HedgeOff { reason } => {
                self.refused_hedges.add(1, &by(dependency, reason.as_str()));
            }
            What::FellBack { ended, .. } => {
                let ended = KeyValue::new(FALLBACK_OUTCOME, ended.as_str());
                self.fallbacks.add(1, &[of(dependency), ended]);
            }
            What::Shed { by, priority } => self.shed(dependency, by, priority),
            What::Key { step, .. } => {
                let step = KeyValue::new(REASON, step.as_str());
                self.idempotency_keys.add(1, &[step]);
            }
            What::PoliciesReloaded { refused } => {
                let outcome = refused.map_or("applied", |_| "refused");
                let outcome = KeyValue::new(POLICY_OUTCOME, outcome);
                self.policy_reloads.add(1, &[outcome]);
            }
            What::FaultInjected { fault } => self.injected_faults.add(1, &by(dependency, fault)),
            _ => {}
        }
    }

    fn rejected(&self, context: &CallContext, rejection: &Rejection) {
        let [dependency, reason] = by(
            named(rejection.dependency(), context),
            rejection.reason().as_str(),
        );
        let sent = KeyValue::new(SENT, rejection.sent());
        self.rejections.add(1, &[dependency, reason, sent]);
    }

    fn changed(&self, context: &CallContext, change: &Transition) {
        // One that is gone has no state to come to.
        let Some(to) = change.to else {
            return;
        };
        let [dependency, reason] = by(named(change.dependency, context), change.cause.as_str());
        let state = KeyValue::new(BREAKER_STATE, to.as_str());
        self.breaker_transitions
            .add(1, &[dependency, state, reason]);
    }

    fn shed(&self, dependency: Dependency, rule: ShedBy, priority: Option<&'static str>) {
        let mut attributes = Attributes::<3>::new()
            .with(DEPENDENCY, dependency.as_str())
            .with(REASON, rule.as_str());
        if let Some(priority) = priority {
            attributes.push(PRIORITY, priority);
        }
        self.shed_calls.add(1, attributes.as_slice());
    }

    fn doubt(&self, reason: &'static str) {
        self.doubted_deadlines
            .add(1, &[KeyValue::new(REASON, reason)]);
    }
}

/// The dependency that the event names itself, or else that of the call.
pub(super) fn named(own: Dependency, context: &CallContext) -> Dependency {
    if own.is_unnamed() {
        context.dependency()
    } else {
        own
    }
}

fn of(dependency: Dependency) -> KeyValue {
    KeyValue::new(DEPENDENCY, dependency.as_str())
}

fn by(dependency: Dependency, reason: &'static str) -> [KeyValue; 2] {
    [of(dependency), KeyValue::new(REASON, reason)]
}
