//! The order, spelled once.

use std::fmt;
use std::sync::Arc;

use mamparo_core::http::Http;
use tower_layer::{Identity, Layer};

use super::current::{Current, Recipe};
use super::resends::Resends;
use super::updates::Source;
use super::{FallbackSlot, Protocol, Stack};
use crate::attempt_timeout::{AttemptTimeout, AttemptTimeoutLayer};
use crate::breaker::{Breaker, BreakerPolicy, One};
use crate::bulkhead::Bulkhead;
use crate::deadline::{DeadlineLayer, DeadlineService};
use crate::idempotency_key::{IdempotencyKey, IdempotencyKeyLayer};
use crate::load_shed::{AllEqual, LoadShed, LoadShedPolicy};
use crate::rate_limit::{OneLimit, RateLimit, RateLimitPolicy};
use crate::wire::HttpWire;

/// What stands between the two layers of telemetry, around `S`; `F` is the fallback, or [`Identity`] for none.
pub type Ordered<S, F = Identity, P = Http> =
    DeadlineService<<F as Layer<Operation<S, P>>>::Service, HttpWire>;

/// What happens once per operation, inside of its deadline and of its fallback.
pub type Operation<S, P = Http> =
    LoadShed<IdempotencyKey<Bulkhead<Broken<Resends<Attempt<S, P>, P>, P>, P>>, P, AllEqual>;

/// What happens once per attempt.
pub type Attempt<S, P = Http> = <P as Protocol>::Peeked<Sent<S, P>>;

type Sent<S, P> =
    Broken<RateLimit<AttemptTimeout<S, HttpWire>, OneLimit, <P as Protocol>::Limits>, P>;

type Broken<S, P> = Breaker<S, P, One>;

impl<S, O, A, F, P> Layer<S> for Stack<O, A, F, P>
where
    P: Protocol,
    A: Layer<S> + Clone,
    A::Service: Clone,
    F: FallbackSlot<P> + Layer<Operation<A::Service, P>>,
    O: Layer<Ordered<A::Service, F, P>> + Clone,
{
    type Service = Current<O::Service, Order<A::Service, O, F, P>>;

    fn layer(&self, transport: S) -> Self::Service {
        // Innermost: one span and one traceparent per physical send.
        let attempt = self.attempt_telemetry.layer(transport);
        match &self.source {
            None => Current::fixed(self.ordered(attempt)),
            Some(source) => Current::following(Order {
                source: Arc::clone(source),
                stack: self
                    .clone()
                    .with(|operation, _, fallback| (operation, Identity::new(), fallback)),
                attempt,
            }),
        }
    }
}

/// How a stack whose settings change is put around a transport.
pub struct Order<S, O, F, P: Protocol> {
    source: Arc<Source<P>>,
    stack: Stack<O, Identity, F, P>,
    attempt: S,
}

impl<S, O, F, P> Recipe<O::Service> for Order<S, O, F, P>
where
    P: Protocol,
    S: Clone,
    F: FallbackSlot<P> + Layer<Operation<S, P>>,
    O: Layer<Ordered<S, F, P>> + Clone,
{
    #[inline]
    fn version(&self) -> u64 {
        self.source.version()
    }

    fn make(&self) -> (u64, O::Service) {
        let (version, newest) = self.source.newest();
        let stack = self.stack.renewed(&newest);
        (version, stack.ordered(self.attempt.clone()))
    }
}

impl<O, A, F, P: Protocol> Stack<O, A, F, P> {
    // Innermost first, as each one is put around what stands so far.
    fn ordered<S>(&self, service: S) -> O::Service
    where
        S: Clone,
        F: FallbackSlot<P> + Layer<Operation<S, P>>,
        O: Layer<Ordered<S, F, P>>,
    {
        // One limit per physical send, and the header written anew with what remains.
        let service = self.attempt_timeout().layer(service);
        // Each attempt is charged, and waits for its turn outside of what it may take.
        let off = || self.limiting(RateLimitPolicy::off());
        let rate_limit = self.rate_limit.clone().unwrap_or_else(off);
        let service = rate_limit.layer(service);
        // Sees every attempt, so that it opens on the damage done; whoever resends does not resend what it refuses.
        let service = self.breaker.layer(service);
        // Opt-in, for gRPC: shows whoever resends a failure that comes in the trailers, before any data.
        let service = P::peeked(self.peek, service);
        // The one owner of resends: all that is inside happens once per attempt.
        let service = self.resent(service);
        // Opt-in: sees what comes of an operation in the end.
        let off = || self.breaking(BreakerPolicy::off());
        let breaker = self.operation_breaker.clone().unwrap_or_else(off);
        let service = breaker.layer(service);
        // Refuses before any work is spent; its place is kept over all attempts, until the body ends.
        let service = self.bulkhead.layer(service);
        // One key per operation, before anything can resend.
        let service = self.keyed().layer(service);
        // Opt-in: what is shed has cost nothing yet.
        let off = || self.shedding(LoadShedPolicy::off());
        let load_shed = self.load_shed.clone().unwrap_or_else(off);
        let service = load_shed.layer(service);
        // Opt-in: sees what finally comes of an operation, and answers in time or not at all.
        let service = self.fallen_back().layer(service);
        // Its clock starts before any wait.
        let service = self.timed().layer(service);
        // The denominator: one record per operation, whatever happens inside.
        self.operation_telemetry.layer(service)
    }

    fn attempt_timeout(&self) -> AttemptTimeoutLayer<HttpWire> {
        AttemptTimeoutLayer::with_wire(self.attempt, self.wire.clone())
            .dependency(self.dependency)
            .observed(self.observer.clone())
    }

    fn resent<S: Clone>(&self, service: S) -> Resends<S, P> {
        let protocol = match self.key.header() {
            Some(name) => self.protocol.clone().keyed_by(name),
            None => self.protocol.clone(),
        };
        self.owner
            .around(service, protocol, self.dependency, self.observer.as_ref())
    }

    fn keyed(&self) -> IdempotencyKeyLayer {
        IdempotencyKeyLayer::new(self.key.clone())
            .dependency(self.dependency)
            .observed(self.observer.clone())
    }

    fn fallen_back(&self) -> F
    where
        F: FallbackSlot<P>,
    {
        self.fallback.fitted(&self.protocol, self.observer.as_ref())
    }

    fn timed(&self) -> DeadlineLayer<HttpWire> {
        let wire = match &self.owner.config {
            Some(config) => self.wire.clone().service_config(config),
            None => self.wire.clone(),
        };
        DeadlineLayer::with_wire(self.deadline, wire)
            .dependency(self.dependency)
            .observed(self.observer.clone())
            .counting_late(Arc::clone(&self.late))
    }
}

impl<S, O, F, P: Protocol> fmt::Debug for Order<S, O, F, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Order")
            .field("dependency", &self.stack.dependency)
            .finish_non_exhaustive()
    }
}
