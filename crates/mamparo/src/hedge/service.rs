//! The wiring of a hedge.

use std::fmt;
use std::task::{Context, Poll};

use mamparo_core::shard::Spread;
use mamparo_core::{Answer, BoxError, CallContext, Classify, LayerKind, NotResent, Scope, What};
use tower_service::Service;

use super::HedgeFuture;
use super::arm::{Run, Scene};
use super::layer::{Made, Shared};
use super::operation::{Next, Operation};
use super::state::{Course, hedged};
use crate::replay::Replay;

/// Sends a slow request a second time, and takes the better answer; see the [module](super).
pub struct Hedge<S, P> {
    inner: S,
    made: Spread<Made<S, P>>,
}

impl<S, P> Hedge<S, P> {
    pub(super) const fn new(inner: S, made: Spread<Made<S, P>>) -> Self {
        Self { inner, made }
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
        let shared = &self.made.shared;
        let mut scene = scene(shared);
        let safety = shared.protocol.safety(&request);
        let hedged = hedged(&shared.policy, safety, scene.scope.is_inside_retry());
        // What is not hedged may still be sent again once a failure proves that it was never processed.
        let one_by_one = hedged == Err(NotResent::NotIdempotent);
        if hedged.is_err() && !one_by_one {
            scene.most = 1;
        }
        let keep = (hedged.is_ok() || one_by_one).then_some(shared.policy.settings.max_body);
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
        let future = self.inner.call(wire);
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
                first,
                race: None,
                _deposits: deposits,
                made: self.made.hold(),
            },
        }
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
        Self::new(self.inner.clone(), self.made.clone())
    }
}

impl<S: fmt::Debug, P> fmt::Debug for Hedge<S, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hedge")
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}
