//! The wiring of a hedge.

use std::fmt;
use std::task::{Context, Poll};

use mamparo_core::grpc::Codes;
use mamparo_core::shard::Spread;
use mamparo_core::{Answer, BoxError, CallContext, Classify, LayerKind, NotResent, Scope, What};
use tower_service::Service;

use super::HedgeFuture;
use super::arm::{Run, Scene};
use super::layer::{Made, Shared};
use super::operation::{Next, Operation};
use super::state::{Course, hedged, plan};
use crate::grpc::MethodConfig;
use crate::replay::Replay;
use crate::resend::bound_attempts;

/// Sends a slow request a second time, and takes the better answer; see the [module](super).
pub struct Hedge<S, P> {
    inner: S,
    calls: Calls<S, P>,
}

/// Makes the calls, through an instance of the inner service that whoever holds this holds too.
pub(crate) struct Calls<S, P> {
    made: Spread<Made<S, P>>,
}

impl<S, P> Hedge<S, P> {
    pub(super) const fn new(inner: S, calls: Calls<S, P>) -> Self {
        Self { inner, calls }
    }
}

impl<S, P> Calls<S, P> {
    pub(super) const fn new(made: Spread<Made<S, P>>) -> Self {
        Self { made }
    }

    /// Makes a call through an instance that was polled ready.
    #[inline]
    pub(crate) fn call<Req>(&self, inner: &mut S, request: Req) -> HedgeFuture<S, P, Req>
    where
        P: Replay<Req> + Classify<S::Response> + Answer<S::Response>,
        S: Service<P::Wire> + Clone,
        S::Error: Into<BoxError>,
    {
        let shared = &self.made.shared;
        let mut scene = scene(shared);
        let mut safety = shared.protocol.safety(&request);
        let method = shared.find(&request);
        let said = shared.method(method);
        if let Some(plan) = plan(said) {
            safety = safety.with_plan(plan.codes());
            scene.most = plan.attempts();
        }
        if let Some(timeout) = said.and_then(MethodConfig::timeout) {
            bound_attempts(&mut scene.scope, timeout);
        }
        let inside = scene.scope.is_inside_retry();
        let hedged = hedged(&shared.policy, said, safety, inside);
        // What is not hedged may still be sent again once a failure proves that it was never processed.
        let one_by_one = hedged == Err(NotResent::NotIdempotent);
        if hedged.is_err() && !one_by_one {
            scene.most = 1;
        }
        if one_by_one {
            safety = safety.with_listed(Codes::NONE);
        }
        let owned = hedged != Err(NotResent::OwnedOutside);
        let resends = hedged.is_ok() || one_by_one || (shared.protocol.is_transparent() && owned);
        let keep = resends.then_some(shared.policy.settings.max_body);
        let (wire, held) = shared.protocol.split(request, keep);
        let off = match hedged {
            Ok(()) => held.is_none().then_some(NotResent::BodyTooLarge),
            Err(reason) => Some(reason),
        };
        scene.turn_to(1);
        if let Some(reason) = off.filter(|reason| *reason != NotResent::AttemptsExhausted) {
            scene.report(shared.observer.as_ref(), What::HedgeOff { reason });
        }
        let mut first = Run::numbered(1);
        // What nobody measures needs no clock.
        first.started = (shared.latency.is_some() && off.is_none()).then(CallContext::now);
        // Where another owner of resends stands around this one, the operation is paid in there.
        let deposits = (off != Some(NotResent::OwnedOutside)).then(|| {
            let policy = &shared.policy;
            let tenant = scene.scope.tenant();
            (policy.budget().deposit(tenant), policy.extra.deposit(None))
        });
        let next = off.map_or(Next::AtDelay, |_| Next::Never);
        let course = if one_by_one {
            let too_large = held.is_none().then_some(NotResent::BodyTooLarge);
            Course::begun(scene.most, too_large).one_by_one()
        } else {
            Course::begun(scene.most, off)
        };
        // The instance that was polled ready makes the first attempt; those to come wait for a readiness of their own.
        let before = scene.scope.sends();
        let entered = scene.scope.entered();
        let future = inner.call(wire);
        drop(entered);
        first.sends = scene.scope.sends().saturating_sub(before);
        // Written where it stays: what is built apart is copied once more.
        HedgeFuture {
            first: Some(future),
            timer: None,
            operation: Operation {
                held,
                course,
                scene,
                safety,
                next,
                method,
                first,
                race: None,
                _deposits: deposits,
                made: self.made.hold(),
            },
        }
    }
}

impl<S, P, Req> Service<Req> for Hedge<S, P>
where
    P: Replay<Req> + Classify<S::Response> + Answer<S::Response>,
    S: Service<P::Wire> + Clone,
    S::Error: Into<BoxError>,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = HedgeFuture<S, P, Req>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    #[inline]
    fn call(&mut self, request: Req) -> Self::Future {
        self.calls.call(&mut self.inner, request)
    }
}

/// The context in which the attempts of an operation are made.
#[inline]
fn scene<P>(shared: &Shared<P>) -> Scene {
    // One kind for all owners of resends: whichever stands outside of the other owns them.
    let mut scope = Scope::join(LayerKind::Retry, shared.dependency);
    if shared.observer.is_some() {
        scope.set_started(CallContext::now());
    }
    if scope.is_inside_retry() || scope.upstream_attempt() > 1 {
        shared.report_nested(&scope);
    }
    Scene {
        scope,
        most: shared.policy.max_attempts(),
        called: 1,
    }
}

impl<S: Clone, P> Clone for Hedge<S, P> {
    fn clone(&self) -> Self {
        Self::new(self.inner.clone(), self.calls.clone())
    }
}

impl<S, P> Clone for Calls<S, P> {
    fn clone(&self) -> Self {
        Self::new(self.made.clone())
    }
}

impl<S, P> fmt::Debug for Calls<S, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hedge")
    }
}

impl<S: fmt::Debug, P> fmt::Debug for Hedge<S, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hedge")
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}
