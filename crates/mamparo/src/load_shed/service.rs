//! The wiring of load shedding.

use std::fmt;
use std::task::{Context, Poll};

use mamparo_core::clock::{self, Instant};
use mamparo_core::shard::{Held, Spread};
use mamparo_core::{BoxError, CallContext, Event, Gate, Outcome, ShedBy, What};
use tower_service::Service;

use super::LoadShedFuture;
use super::error::overloaded;
use super::guard::{Place, ShedGuard};
use super::layer::Shared;
use super::load::nanos;
use super::priority::{Assess, Priority};
use super::waiting::Waiting;
use crate::bound;

/// Refuses calls while the load is too high; see the [module](super).
pub struct LoadShed<S, P, A> {
    inner: Gate<S>,
    shared: Spread<Shared<P, A>>,
}

impl<S, P, A> LoadShed<S, P, A> {
    pub(super) const fn new(inner: S, shared: Spread<Shared<P, A>>) -> Self {
        Self {
            inner: Gate::new(inner),
            shared,
        }
    }
}

impl<S, P, A, Req> Service<Req> for LoadShed<S, P, A>
where
    S: Service<Req> + Clone,
    S::Error: Into<BoxError>,
    P: Outcome<S::Response> + Clone,
    A: Assess<Req>,
{
    type Response = P::Out<ShedGuard<P, A>>;
    type Error = BoxError;
    type Future = LoadShedFuture<S, P, A, Req>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    #[inline]
    fn call(&mut self, request: Req) -> Self::Future {
        let shared = &*self.shared;
        let ready = self.inner.is_ready();
        let mut place = None;
        if !shared.policy.is_off() {
            let call = Call::new(shared, &request);
            let admitted = match shared.admit(&call, ready, || self.shared.hold()) {
                Ok(place) => place,
                Err(by) => {
                    self.inner.release();
                    return LoadShedFuture::refused(shared.refuse(by, call.priority));
                }
            };
            if !ready {
                return self.wait(request, admitted, call);
            }
            place = Some(admitted);
        }
        // One call, whether or not the layer is off: what is further in is compiled into each.
        LoadShedFuture::called(self.inner.call(request), place)
    }
}

impl<S, P, A> LoadShed<S, P, A> {
    /// Waits for the inner service.
    #[cold]
    fn wait<Req>(
        &mut self,
        request: Req,
        place: Place<P, A>,
        call: Call,
    ) -> LoadShedFuture<S, P, A, Req>
    where
        S: Service<Req> + Clone,
    {
        let gate = self.inner.clone();
        let gate = std::mem::replace(&mut self.inner, gate);
        LoadShedFuture::waits(Waiting::new(gate, request, place, call))
    }
}

/// What the rules ask of a call.
pub(super) struct Call {
    priority: Option<Priority>,
    share: f64,
    /// When it arrived, where its wait counts.
    pub(super) arrived: Option<Instant>,
    now: Option<Instant>,
}

impl Call {
    #[inline]
    fn new<Req, P, A: Assess<Req>>(shared: &Shared<P, A>, request: &Req) -> Self {
        let priority = shared.assess.priority(request);
        // The time is asked for only where a rule needs it.
        let now = shared
            .policy
            .settings
            .queue_time
            .map(|_| CallContext::now());
        let arrived = now.map(|now| shared.assess.arrived(request).unwrap_or(now));
        Self {
            priority,
            share: shared.policy.share(priority),
            arrived,
            now,
        }
    }
}

impl<P, A> Shared<P, A> {
    /// Lets a call pass, and counts it in; or says by which rule it is shed.
    #[inline]
    fn admit(
        &self,
        call: &Call,
        ready: bool,
        hold: impl FnOnce() -> Held<Self>,
    ) -> Result<Place<P, A>, ShedBy> {
        let settings = &self.policy.settings;
        if settings.refuse_when_not_ready && !ready {
            return Err(ShedBy::NotReady);
        }
        if let Some(rule) = settings.throttle {
            let now = || self.load.nanos(call.now.unwrap_or_else(CallContext::now));
            let answers = &self.load.answers;
            let rejection = answers.rejection(settings, rule, call.share, now);
            if rejection > 0.0 && fastrand::f64() < rejection {
                answers.count(rule, self.load.nanos(clock::now()), false);
                return Err(ShedBy::Throttle);
            }
        }
        if ready && let Some(now) = call.now {
            self.waited(call, now)?;
        }
        if let Some(limit) = settings.max_in_flight
            && !self.load.in_flight.enter(limit, call.share)
        {
            return Err(ShedBy::InFlight);
        }
        Ok(Place::new(hold()))
    }

    /// Notes how long a call has waited whose turn has come; or says that it is shed.
    pub(super) fn waited(&self, call: &Call, now: Instant) -> Result<(), ShedBy> {
        let (Some(rule), Some(arrived)) = (self.policy.settings.queue_time, call.arrived) else {
            return Ok(());
        };
        let waited = if arrived == now {
            0
        } else {
            let waited = now.saturating_duration_since(arrived);
            CallContext::note_queue(self.dependency, waited, self.policy.settings.max_in_flight);
            nanos(waited)
        };
        let now = self.load.nanos(now);
        if self.load.waits.sheds(rule, now, waited, call.share) {
            return Err(ShedBy::QueueTime);
        }
        Ok(())
    }

    /// Makes the rejection of a call that was shed, and reports it.
    #[cold]
    pub(super) fn refuse(&self, by: ShedBy, priority: Option<Priority>) -> BoxError {
        let context = CallContext::current_for(self.dependency);
        let observer = self.observer.as_ref();
        let priority = priority.map(Priority::as_str);
        Event::report(observer, &context, What::Shed { by, priority });
        let rejection = overloaded(&self.policy, self.name(&context));
        bound::reject(rejection, &context, observer)
    }
}

impl Call {
    pub(super) const fn priority(&self) -> Option<Priority> {
        self.priority
    }
}

impl<S: Clone, P: Clone, A: Clone> Clone for LoadShed<S, P, A> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            shared: self.shared.clone(),
        }
    }
}

impl<S: fmt::Debug, P, A> fmt::Debug for LoadShed<S, P, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadShed")
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}
