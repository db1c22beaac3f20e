//! What the layers of a call have decided, for whoever records it.

use std::time::Duration;

use super::nanos::Nanos;
use super::{CallContext, current};
use crate::Dependency;
use crate::breaker::{BreakerDecision, BreakerState};

/// The last word of each layer that has one, since the operation began.
///
/// All layers of an operation write to the same notes, so that those of an attempt are written over by the next one's. What
/// only some attempts have is kept with the number of its attempt.
#[derive(Clone, Copy, Debug)]
pub(super) struct Notes {
    breaker: Option<(BreakerState, BreakerDecision)>,
    queue: Option<Queued>,
    rate_limited: Option<RateLimited>,
}

#[derive(Clone, Copy, Debug)]
struct Queued {
    waited: Nanos,
    /// 0 where there is none.
    limit: usize,
}

#[derive(Clone, Copy, Debug)]
struct RateLimited {
    waited: Nanos,
    attempt: u32,
}

impl Notes {
    pub(super) const NONE: Self = Self {
        breaker: None,
        queue: None,
        rate_limited: None,
    };
}

/// Changes the current operation's notes, if it is for that dependency: a call to another is none of its business.
#[inline]
fn note(dependency: Dependency, change: impl FnOnce(&mut CallContext)) {
    current::with(|context| {
        if context.view.dependency.may_be(dependency) {
            change(context);
        }
    });
}

impl CallContext {
    /// Notes what a circuit breaker has decided for the current call, and in which state.
    ///
    /// ```
    /// use mamparo_core::breaker::{BreakerDecision, BreakerState};
    /// use mamparo_core::{CallContext, LayerKind, Scope};
    ///
    /// let mut scope = Scope::join(LayerKind::Deadline, "catalog".into());
    /// scope.enter(|| {
    ///     CallContext::note_breaker("catalog".into(), BreakerState::HalfOpen, BreakerDecision::Probe);
    ///     CallContext::note_breaker("auth".into(), BreakerState::Closed, BreakerDecision::Admitted);
    /// });
    /// let noted = scope.context().breaker();
    /// assert_eq!(noted, Some((BreakerState::HalfOpen, BreakerDecision::Probe)));
    /// ```
    #[inline]
    pub fn note_breaker(dependency: Dependency, state: BreakerState, decision: BreakerDecision) {
        note(dependency, |context| {
            context.notes.breaker = Some((state, decision));
        });
    }

    /// Notes how long the current call has waited for its place, and how many calls may have one, where that is limited.
    #[inline]
    pub fn note_queue(dependency: Dependency, waited: Duration, limit: Option<usize>) {
        note(dependency, |context| {
            context.notes.queue = Some(Queued {
                waited: Nanos::of(waited),
                limit: limit.unwrap_or(0),
            });
        });
    }

    /// Notes how long the current attempt has waited for its turn under a rate limit.
    #[inline]
    pub fn note_rate_limit(dependency: Dependency, waited: Duration) {
        note(dependency, |context| {
            context.notes.rate_limited = Some(RateLimited {
                waited: Nanos::of(waited),
                attempt: context.view.attempt,
            });
        });
    }

    /// Returns the state in which a circuit breaker has last decided on the call, and what it decided.
    #[must_use]
    pub const fn breaker(&self) -> Option<(BreakerState, BreakerDecision)> {
        self.notes.breaker
    }

    /// Returns how long the call has waited for its place, zero if it had one at once; none without a layer that has places.
    #[must_use]
    pub fn queue_wait(&self) -> Option<Duration> {
        self.notes.queue.map(|queued| queued.waited.duration())
    }

    /// Returns how many calls could have a place as this one asked for its own.
    #[must_use]
    pub fn limit_in_force(&self) -> Option<usize> {
        let limit = self.notes.queue.map(|queued| queued.limit);
        limit.filter(|&limit| limit > 0)
    }

    /// Returns how long the current attempt has waited for its turn under a rate limit, if it did.
    #[must_use]
    pub fn rate_limit_wait(&self) -> Option<Duration> {
        let noted = self.notes.rate_limited?;
        (noted.attempt == self.view.attempt).then(|| noted.waited.duration())
    }
}
