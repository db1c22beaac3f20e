//! The settings of a stack: one policy per dependency.

use std::mem::swap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use mamparo_core::grpc::Grpc;
use mamparo_core::http::Http;
use mamparo_core::{Dependency, Observer};
use tower_layer::Identity;

use super::Protocol;
use super::resends::{Owner, Owners};
use super::updates::Source;
use crate::attempt_timeout::AttemptPolicy;
use crate::breaker::{BreakerLayer, BreakerPolicy};
use crate::bulkhead::{BulkheadLayer, BulkheadPolicy};
use crate::connect_timeout::ConnectTimeoutLayer;
use crate::deadline::DeadlinePolicy;
use crate::fallback::{FallbackLayer, FallbackPolicy};
use crate::grpc::ServiceConfig;
use crate::hedge::HedgePolicy;
use crate::idempotency_key::KeyPolicy;
use crate::load_shed::{LoadShedLayer, LoadShedPolicy};
use crate::peek::PeekLayer;
use crate::rate_limit::{OneLimit, RateLimitLayer, RateLimitPolicy};
use crate::retry::RetryPolicy;
use crate::wire::HttpWire;

/// The recommended stack for one dependency; a tower `Layer`, see the [module](super).
///
/// `O` and `A` are the layers of telemetry, around an operation and around each attempt; `F` is the fallback. `P` is the
/// protocol: [`Http`] or [`Grpc`].
///
/// A clone shares all state that belongs to the dependency: budget, breakers, places, rates. Setting a policy begins
/// with new state, for this stack alone.
#[derive(Clone, Debug)]
pub struct Stack<O = Identity, A = Identity, F = Identity, P: Protocol = Http> {
    pub(super) dependency: Dependency,
    pub(super) deadline: DeadlinePolicy,
    /// Layers that are off by default are made when they are needed: a program may have many stacks.
    pub(super) load_shed: Option<LoadShedLayer<P>>,
    pub(super) key: KeyPolicy,
    pub(super) bulkhead: BulkheadLayer<P>,
    pub(super) operation_breaker: Option<BreakerLayer<P>>,
    pub(super) owner: Owners<P>,
    pub(super) peek: PeekLayer,
    pub(super) breaker: BreakerLayer<P>,
    pub(super) rate_limit: Option<RateLimitLayer<OneLimit, P::Limits>>,
    pub(super) attempt: AttemptPolicy,
    pub(super) connect: ConnectTimeoutLayer,
    pub(super) protocol: P,
    pub(super) wire: HttpWire,
    pub(super) observer: Option<Arc<dyn Observer>>,
    pub(super) operation_telemetry: O,
    pub(super) attempt_telemetry: A,
    pub(super) fallback: F,
    /// How many operations ended late.
    pub(super) late: Arc<AtomicU64>,
    /// Where newer settings come from.
    pub(super) source: Option<Arc<Source<P>>>,
    /// The parts that were set by hand since: a bit for each.
    pub(super) by_hand: u16,
}

/// What can be set by hand, and then stays whatever an update says.
#[derive(Clone, Copy)]
enum Part {
    Deadline = 1,
    LoadShed = 1 << 1,
    Key = 1 << 2,
    Bulkhead = 1 << 3,
    OperationBreaker = 1 << 4,
    Owner = 1 << 5,
    Breaker = 1 << 6,
    RateLimit = 1 << 7,
    Attempt = 1 << 8,
    Classifier = 1 << 9,
    Wire = 1 << 10,
    ServiceConfig = 1 << 11,
    Peek = 1 << 12,
}

impl Stack {
    /// Starts from the defaults for a dependency.
    ///
    /// On are: 10 s for an operation, 64 operations at once and 64 waiting for up to 100 ms, 3 attempts of 2 s, and a
    /// breaker that observes attempts and opens at 5 failures in a row. Off are: load shedding, a fallback,
    /// idempotency keys, a breaker that observes operations, and a rate limit.
    #[must_use]
    pub fn http(dependency: impl Into<Dependency>) -> Self {
        Self::of(dependency.into(), Http::default(), HttpWire::default())
    }
}

impl Stack<Identity, Identity, Identity, Grpc> {
    /// Starts from the defaults for a dependency that speaks gRPC.
    ///
    /// They are those of [`http`](Stack::http), but that its deadline travels in `grpc-timeout` alone, that an answer is
    /// judged by its `grpc-status`, and that only `UNAVAILABLE` is sent again, before any part of the answer is there.
    #[must_use]
    pub fn grpc(dependency: impl Into<Dependency>) -> Self {
        Self::of(dependency.into(), Grpc, HttpWire::grpc())
    }
}

impl<O, A, F> Stack<O, A, F, Grpc> {
    /// Obeys a gRPC service config: per method it says how often and when a request is sent again, or whether it is hedged, and
    /// how long a call may take.
    ///
    /// A method of which it says nothing has the stack's own [`retry`](Self::retry), or [`hedge`](Self::hedge). All resends
    /// draw from one [budget](Self::budget).
    #[must_use]
    pub fn service_config(mut self, config: &ServiceConfig) -> Self {
        self.owner = self.owner.configured(config.clone(), &self.protocol);
        self.set(Part::ServiceConfig)
    }

    /// Sends again what fails in its trailers, before any data; off by default, since a head commits the call (gRFC A6).
    ///
    /// For servers that answer with a head before they know whether they can: see [`peek`](crate::peek).
    #[must_use]
    pub fn peek(mut self, layer: PeekLayer) -> Self {
        self.peek = layer;
        self.set(Part::Peek)
    }
}

impl<P: Protocol> Stack<Identity, Identity, Identity, P> {
    fn of(dependency: Dependency, protocol: P, wire: HttpWire) -> Self {
        let bulkhead = BulkheadLayer::new(BulkheadPolicy::default(), protocol.clone());
        let breaker = BreakerLayer::new(BreakerPolicy::default(), protocol.clone());
        Self {
            dependency,
            deadline: DeadlinePolicy::default(),
            load_shed: None,
            key: KeyPolicy::off(),
            bulkhead: bulkhead.dependency(dependency),
            operation_breaker: None,
            owner: Owners::only(Owner::Retry(RetryPolicy::default())),
            peek: PeekLayer::off(),
            breaker: breaker.dependency(dependency),
            rate_limit: None,
            attempt: AttemptPolicy::default(),
            connect: ConnectTimeoutLayer::default().dependency(dependency),
            protocol,
            wire,
            observer: None,
            operation_telemetry: Identity::new(),
            attempt_telemetry: Identity::new(),
            fallback: Identity::new(),
            late: Arc::default(),
            source: None,
            by_hand: 0,
        }
    }
}

impl<O, A, F, P: Protocol> Stack<O, A, F, P> {
    /// Sets how long an operation may take; 10 s by default.
    #[must_use]
    pub fn deadline(mut self, policy: DeadlinePolicy) -> Self {
        self.deadline = policy;
        self.set(Part::Deadline)
    }

    /// Sheds operations while the load is too high; off by default.
    #[must_use]
    pub fn load_shed(mut self, policy: LoadShedPolicy) -> Self {
        self.load_shed = (!policy.is_off()).then(|| self.shedding(policy));
        self.fitted().set(Part::LoadShed)
    }

    /// Gives unsafe requests an idempotency key; off by default, since the dependency must honour it.
    #[must_use]
    pub fn idempotency_key(mut self, policy: KeyPolicy) -> Self {
        self.key = policy;
        self.set(Part::Key)
    }

    /// Sets how many operations may run at once, and how many wait; 64 and 64 by default.
    #[must_use]
    pub fn bulkhead(mut self, policy: BulkheadPolicy) -> Self {
        self.bulkhead =
            BulkheadLayer::new(policy, self.protocol.clone()).dependency(self.dependency);
        self.fitted().set(Part::Bulkhead)
    }

    /// Adds a breaker around whatever resends: it observes operations, each by what comes of it in the end; off by default.
    ///
    /// It opens later than the one that observes [attempts](Self::breaker), and can stand beside it.
    #[must_use]
    pub fn operation_breaker(mut self, policy: BreakerPolicy) -> Self {
        self.operation_breaker = (!policy.is_off()).then(|| self.breaking(policy));
        self.fitted().set(Part::OperationBreaker)
    }

    /// Sets when and how often a failed request is sent again; 3 attempts by default.
    ///
    /// It is the one owner of resends: a [hedge](Self::hedge) that was set before is gone.
    #[must_use]
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.owner = self.owner.usually(Owner::Retry(policy), &self.protocol);
        self.set(Part::Owner)
    }

    /// Sends a slow request a second time beside the first, instead of sending a failed one again.
    ///
    /// It is the one owner of resends: a [retry](Self::retry) that was set before is gone. To let it share what pays for
    /// resends with another stack, of the same dependency's other calls, give it that one's [budget](Self::budget).
    #[must_use]
    pub fn hedge(mut self, policy: HedgePolicy) -> Self {
        let hedge = Owner::hedge(policy, self.protocol.clone());
        self.owner = self.owner.usually(hedge, &self.protocol);
        self.set(Part::Owner)
    }

    /// Sets when the breaker opens that observes attempts; at 5 failures in a row by default.
    #[must_use]
    pub fn breaker(mut self, policy: BreakerPolicy) -> Self {
        self.breaker = self.breaking(policy);
        self.fitted().set(Part::Breaker)
    }

    /// Lets attempts pass at a rate; off by default, since only the dependency's owner knows it.
    #[must_use]
    pub fn rate_limit(mut self, policy: RateLimitPolicy) -> Self {
        self.rate_limit = (!policy.is_off()).then(|| self.limiting(policy));
        self.fitted().set(Part::RateLimit)
    }

    /// Sets how long one attempt may take, and its body may stall; 2 s and 10 s by default.
    #[must_use]
    pub fn attempt(mut self, policy: AttemptPolicy) -> Self {
        self.attempt = policy;
        self.set(Part::Attempt)
    }

    /// Sets how long a connection may take; 1 s by default.
    #[must_use]
    pub fn connect_timeout(mut self, layer: ConnectTimeoutLayer) -> Self {
        self.connect = layer.dependency(self.dependency);
        self
    }

    /// Sets which answers are failures, and which may be sent again: for every layer of the stack.
    #[must_use]
    pub fn classifier(mut self, protocol: P) -> Self {
        self.protocol = protocol;
        self.fitted().set(Part::Classifier)
    }

    /// Sets the headers that carry the deadline.
    #[must_use]
    pub fn wire(mut self, wire: HttpWire) -> Self {
        self.wire = wire;
        self.set(Part::Wire)
    }

    /// Reports what happens in every layer to an observer.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = Some(observer);
        self.fitted()
    }

    pub(super) fn shedding(&self, policy: LoadShedPolicy) -> LoadShedLayer<P> {
        LoadShedLayer::new(policy, self.protocol.clone()).dependency(self.dependency)
    }

    pub(super) fn breaking(&self, policy: BreakerPolicy) -> BreakerLayer<P> {
        BreakerLayer::new(policy, self.protocol.clone()).dependency(self.dependency)
    }

    pub(super) fn limiting(&self, policy: RateLimitPolicy) -> RateLimitLayer<OneLimit, P::Limits> {
        RateLimitLayer::with_limits(policy, P::limits()).dependency(self.dependency)
    }

    const fn set(mut self, part: Part) -> Self {
        self.by_hand |= part as u16;
        self
    }

    /// The same stack by newer settings, but for what was set by hand; its state is theirs.
    pub(super) fn renewed(&self, newest: &Stack<Identity, Identity, Identity, P>) -> Self
    where
        O: Clone,
        A: Clone,
        F: Clone,
    {
        let (mut own, mut next) = (self.clone(), newest.clone());
        let mut renew = |part: Part, swap: fn(&mut Self, &mut Stack<_, _, _, P>)| {
            if self.by_hand & part as u16 == 0 {
                swap(&mut own, &mut next);
            }
        };
        renew(Part::Deadline, |own, next| own.deadline = next.deadline);
        renew(Part::LoadShed, |own, next| {
            swap(&mut own.load_shed, &mut next.load_shed)
        });
        renew(Part::Key, |own, next| swap(&mut own.key, &mut next.key));
        renew(Part::Bulkhead, |own, next| {
            swap(&mut own.bulkhead, &mut next.bulkhead)
        });
        renew(Part::OperationBreaker, |own, next| {
            swap(&mut own.operation_breaker, &mut next.operation_breaker);
        });
        renew(Part::Breaker, |own, next| {
            swap(&mut own.breaker, &mut next.breaker)
        });
        renew(Part::RateLimit, |own, next| {
            swap(&mut own.rate_limit, &mut next.rate_limit)
        });
        renew(Part::Attempt, |own, next| own.attempt = next.attempt);
        renew(Part::Classifier, |own, next| {
            swap(&mut own.protocol, &mut next.protocol)
        });
        renew(Part::Wire, |own, next| swap(&mut own.wire, &mut next.wire));
        renew(Part::Peek, |own, next| own.peek = next.peek);
        let config = match self.by_hand & Part::ServiceConfig as u16 {
            0 => next.owner.config.clone(),
            _ => own.owner.config.clone(),
        };
        if self.by_hand & Part::Owner as u16 == 0 {
            own.owner = next.owner;
        }
        own.owner = own.owner.with_config(config, &own.protocol);
        own.fitted()
    }

    /// Lets all layers that are kept here judge and report as the stack does.
    pub(super) fn fitted(mut self) -> Self {
        let (protocol, observer) = (&self.protocol, &self.observer);
        let breaker =
            |layer: BreakerLayer<P>| layer.judged_by(protocol.clone()).observed(observer.clone());
        self.operation_breaker = self.operation_breaker.map(breaker);
        self.breaker = breaker(self.breaker);
        let load_shed = |layer: LoadShedLayer<P>| layer.judged_by(protocol.clone());
        let load_shed = self.load_shed.map(load_shed);
        self.load_shed = load_shed.map(|layer| layer.observed(observer.clone()));
        let bulkhead = self.bulkhead.judged_by(protocol.clone());
        self.bulkhead = bulkhead.observed(observer.clone());
        let rate_limit = self.rate_limit;
        self.rate_limit = rate_limit.map(|layer| layer.observed(observer.clone()));
        self
    }

    /// Gives an operation that failed another answer; none by default. See [`fallback`](crate::fallback).
    #[must_use]
    pub fn fallback<T>(
        self,
        policy: FallbackPolicy,
        substitute: T,
    ) -> Stack<O, A, FallbackLayer<P, T>, P> {
        let protocol = self.protocol.clone();
        let fallback = FallbackLayer::new(policy, protocol, substitute).dependency(self.dependency);
        self.with(|operation, attempt, _| (operation, attempt, fallback))
    }

    /// Adds the layers that record an operation and each of its attempts: those of `mamparo-telemetry`.
    #[must_use]
    pub fn telemetry<O2, A2>(self, operation: O2, attempt: A2) -> Stack<O2, A2, F, P> {
        self.with(|_, _, fallback| (operation, attempt, fallback))
    }

    pub(super) fn with<O2, A2, F2>(
        self,
        change: impl FnOnce(O, A, F) -> (O2, A2, F2),
    ) -> Stack<O2, A2, F2, P> {
        let (operation_telemetry, attempt_telemetry, fallback) = change(
            self.operation_telemetry,
            self.attempt_telemetry,
            self.fallback,
        );
        Stack {
            dependency: self.dependency,
            deadline: self.deadline,
            load_shed: self.load_shed,
            key: self.key,
            bulkhead: self.bulkhead,
            operation_breaker: self.operation_breaker,
            owner: self.owner,
            peek: self.peek,
            breaker: self.breaker,
            rate_limit: self.rate_limit,
            attempt: self.attempt,
            connect: self.connect,
            protocol: self.protocol,
            wire: self.wire,
            observer: self.observer,
            operation_telemetry,
            attempt_telemetry,
            fallback,
            late: self.late,
            source: self.source,
            by_hand: self.by_hand,
        }
    }

    /// Returns the layer that stands around the client's connector.
    #[must_use]
    pub const fn connect(&self) -> ConnectTimeoutLayer {
        self.connect
    }

    /// Returns the dependency.
    #[must_use]
    pub const fn dependency(&self) -> Dependency {
        self.dependency
    }
}
