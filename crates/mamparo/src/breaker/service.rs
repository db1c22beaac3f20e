//! The wiring of a breaker.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use mamparo_core::breaker::BreakerDecision;
use mamparo_core::shard::Spread;
use mamparo_core::{BoxError, CallContext, Event, Gate, Observer, Outcome, Rejection, What, clock};
use tower_service::Service;

use super::BreakerFuture;
use super::circuit::Circuit;
use super::error::refused;
use super::guard::{BreakerGuard, Open};
use super::keying::KeyOf;
use super::layer::Shared;
use super::ticket::{Refusal, Ticket};

/// Stops calling a dependency that fails; see the [module](super).
pub struct Breaker<S, P, K> {
    inner: Gate<S>,
    shared: Spread<Shared<P, K>>,
}

impl<S, P, K> Breaker<S, P, K> {
    pub(super) const fn new(inner: S, shared: Spread<Shared<P, K>>) -> Self {
        Self {
            inner: Gate::new(inner),
            shared,
        }
    }
}

impl<S, P, K, Req> Service<Req> for Breaker<S, P, K>
where
    S: Service<Req> + Clone,
    S::Error: Into<BoxError>,
    P: Outcome<S::Response> + Clone,
    K: KeyOf<Req>,
{
    type Response = P::Out<BreakerGuard<P, K>>;
    type Error = BoxError;
    type Future = BreakerFuture<S, P, K, Req>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        if self.shared.refuses() {
            return Poll::Ready(Ok(()));
        }
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    #[inline]
    fn call(&mut self, request: Req) -> Self::Future {
        let open = match self.open(&request) {
            Ok(open) => open,
            Err(error) => {
                self.inner.release();
                return BreakerFuture::refused(error);
            }
        };
        match self.inner.ready() {
            Some(service) => BreakerFuture::called(service.call(request), open),
            None => BreakerFuture::waiting(self.inner.call(request), open),
        }
    }
}

impl<S, P: Clone, K: Clone> Breaker<S, P, K> {
    /// Lets a call in, or says why not; none where the layer is off.
    #[inline]
    fn open<Req>(&self, request: &Req) -> Result<Option<Open<P, K>>, BoxError>
    where
        K: KeyOf<Req>,
    {
        if self.shared.off {
            return Ok(None);
        }
        let keyed = match self.shared.keying.key(request) {
            Some(key) => self.shared.circuits.of(key.as_ref()),
            None => None,
        };
        let ticket = self.shared.admit(keyed.as_deref())?;
        Ok(Some(Open::new(self.shared.hold(), keyed, ticket)))
    }
}

impl<P, K> Shared<P, K> {
    /// Tells whether the inner service need not be ready: the call would be refused.
    #[inline]
    fn refuses(&self) -> bool {
        self.circuits.whole().refuses() && !self.policy.shadow && self.circuits.keys().is_none()
    }

    #[inline]
    fn admit(&self, keyed: Option<&Circuit>) -> Result<Ticket, BoxError> {
        let circuit = keyed.unwrap_or_else(|| self.circuits.whole());
        match circuit.admit(clock::now) {
            Ok(ticket) => {
                let (state, decision) = ticket.says();
                CallContext::note_breaker(self.dependency, state, decision);
                Ok(ticket)
            }
            Err(refusal) => self.refuse(refusal),
        }
    }

    #[cold]
    fn refuse(&self, refusal: Refusal) -> Result<Ticket, BoxError> {
        let shadow = self.policy.shadow;
        let decision = if shadow {
            BreakerDecision::Shadowed
        } else {
            BreakerDecision::Rejected
        };
        CallContext::note_breaker(self.dependency, refusal.state, decision);
        if shadow && self.observer.is_none() {
            return Ok(Ticket::unseen());
        }
        let mut dependency = self.dependency;
        if dependency.is_unnamed() {
            dependency = CallContext::current().dependency();
        }
        let rejection = refused(refusal, dependency);
        if let Some(observer) = &self.observer {
            report(observer, &rejection, shadow);
        }
        if shadow {
            Ok(Ticket::unseen())
        } else {
            Err(rejection.into())
        }
    }
}

fn report(observer: &Arc<dyn Observer>, rejection: &Rejection, shadow: bool) {
    let what = if shadow {
        What::Shadowed(rejection)
    } else {
        What::Rejected(rejection)
    };
    Event::report(Some(observer), &CallContext::current(), what);
}

impl<S: Clone, P, K> Clone for Breaker<S, P, K>
where
    Shared<P, K>: Clone,
{
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            shared: self.shared.clone(),
        }
    }
}

impl<S: fmt::Debug, P, K> fmt::Debug for Breaker<S, P, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Breaker")
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}
