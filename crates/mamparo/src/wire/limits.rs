//! What bounds a response body.

use std::sync::Arc;
use std::time::Duration;

use mamparo_core::clock::{self, Instant};
use mamparo_core::{
    CallContext, Deadline, Dependency, Event, Observer, Reason, Rejection, Scope, What,
};

/// What bounds a response body.
#[derive(Debug, Default)]
pub struct BodyLimits {
    pub(crate) scope: Option<Scope>,
    pub(crate) dependency: Dependency,
    pub(crate) deadline: Option<Deadline>,
    pub(crate) idle: Option<Duration>,
    pub(crate) observer: Option<Arc<dyn Observer>>,
}

impl BodyLimits {
    /// Polls the body in this scope.
    #[must_use]
    pub fn within(mut self, scope: Scope) -> Self {
        self.dependency = scope.dependency();
        self.scope = Some(scope);
        self
    }

    /// Cuts the body at this instant.
    #[must_use]
    pub const fn until(mut self, deadline: Option<Deadline>) -> Self {
        self.deadline = deadline;
        self
    }

    /// Cuts the body when no frame has come for this long while one was waited for.
    #[must_use]
    pub const fn idle(mut self, idle: Option<Duration>) -> Self {
        self.idle = idle;
        self
    }

    /// Names the dependency in the rejection.
    #[must_use]
    pub const fn dependency(mut self, dependency: Dependency) -> Self {
        self.dependency = dependency;
        self
    }

    /// Reports a cut to an observer.
    #[must_use]
    pub fn observer(mut self, observer: Option<Arc<dyn Observer>>) -> Self {
        self.observer = observer;
        self
    }
}

impl BodyLimits {
    pub(super) fn enter<R>(&mut self, poll: impl FnOnce() -> R) -> R {
        match &mut self.scope {
            Some(scope) => scope.enter(poll),
            None => {
                CallContext::break_promise();
                poll()
            }
        }
    }

    /// Says which limit has been reached, if one has.
    pub(super) fn reached(&self, idle_until: Option<Deadline>, now: Instant) -> Option<Rejection> {
        let passed = |deadline: Option<Deadline>| deadline.is_some_and(|d| d.has_passed(now));
        if passed(self.deadline) {
            return Some(Rejection::cut(Reason::DeadlineExceeded, self.dependency));
        }
        let idle = self.idle.filter(|_| passed(idle_until))?;
        Some(Rejection::cut(Reason::BodyIdle, self.dependency).with_limit(idle))
    }

    /// Says whether the deadline has passed while there is `more` of the body.
    pub(super) fn passed_in_stream(&self, more: bool) -> Option<Rejection> {
        self.deadline.filter(|_| more)?;
        self.reached(None, clock::now())
    }

    pub(super) fn report(&self, rejection: &Rejection) {
        if self.observer.is_some() {
            let context = self
                .scope
                .as_ref()
                .map_or_else(CallContext::current, Scope::context);
            Event::report(self.observer.as_ref(), &context, What::Rejected(rejection));
        }
    }
}
