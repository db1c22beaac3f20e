//! What the layers of a call have decided, for whoever records it.

use std::time::Duration;

use super::nanos::Nanos;
use super::{CallContext, Cause, current};
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
    resends: Resends,
}

/// How often an operation was sent again, by what led to it.
///
/// Each count stops at 255.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Resends {
    /// Because an attempt had failed.
    pub retries: u8,
    /// Beside other attempts, or for one of them that had failed.
    pub hedges: u8,
    /// As no policy had to be asked: nobody had processed it.
    pub transparent_retries: u8,
    pause: Nanos,
}

impl Resends {
    pub(super) const NONE: Self = Self {
        retries: 0,
        hedges: 0,
        transparent_retries: 0,
        pause: Nanos::ZERO,
    };

    /// Returns for how long no attempt was under way, in all.
    #[must_use]
    pub const fn pause(&self) -> Duration {
        self.pause.duration()
    }

    fn count(&mut self, cause: Cause, pause: Duration) {
        let count = match cause {
            Cause::Retry => &mut self.retries,
            Cause::Hedge => &mut self.hedges,
            Cause::Transparent => &mut self.transparent_retries,
            _ => return,
        };
        *count = count.saturating_add(1);
        self.pause = Nanos::of(self.pause().saturating_add(pause));
    }
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
        resends: Resends::NONE,
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

    /// Notes that the current attempt is a resend, after a pause in which no attempt was under way.
    ///
    /// ```
    /// use mamparo_core::{CallContext, Cause, LayerKind, Scope};
    /// use std::time::Duration;
    ///
    /// let mut scope = Scope::join(LayerKind::Retry, "catalog".into());
    /// scope.set_attempt(2, 3, Cause::Retry);
    /// scope.enter(|| CallContext::note_resend(Duration::from_millis(80)));
    /// let noted = scope.context().resends();
    /// assert_eq!((noted.retries, noted.hedges), (1, 0));
    /// assert_eq!(noted.pause(), Duration::from_millis(80));
    /// ```
    pub fn note_resend(pause: Duration) {
        current::with(|context| context.notes.resends.count(context.view.cause, pause));
    }

    /// Returns how often the operation was sent again.
    #[must_use]
    pub const fn resends(&self) -> Resends {
        self.notes.resends
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
