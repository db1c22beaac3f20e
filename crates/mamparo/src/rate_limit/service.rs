//! The wiring of a rate limit.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use mamparo_core::clock::Instant;
use mamparo_core::gate::GateFuture;
use mamparo_core::shard::Spread;
use mamparo_core::{BoxError, CallContext, Gate, Rejection};
use tower_service::Service;

use super::bucket::Bucket;
use super::common::AtOnce;
use super::error::too_costly;
use super::layer::Shared;
use super::limit::Limit;
use super::meter::Taken;
use super::state::Decision;
use super::waiting::Waiting;
use super::{Charge, RateLimitFuture, ReadsLimit};
use crate::bound;

/// Lets calls pass at a rate; see the [module](super).
pub struct RateLimit<S, C, L> {
    inner: Gate<S>,
    shared: Spread<Shared<C, L>>,
}

impl<S, C, L> RateLimit<S, C, L> {
    pub(super) const fn new(inner: S, shared: Spread<Shared<C, L>>) -> Self {
        Self {
            inner: Gate::new(inner),
            shared,
        }
    }
}

impl<S, C, L, Req> Service<Req> for RateLimit<S, C, L>
where
    S: Service<Req> + Clone,
    S::Error: Into<BoxError>,
    C: Charge<Req>,
    L: ReadsLimit<S::Response>,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = RateLimitFuture<S, C, L, Req>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    #[inline]
    fn call(&mut self, request: Req) -> Self::Future {
        let shared = &*self.shared;
        if shared.policy.is_off() {
            return self.pass(request, None, None);
        }
        let cost = shared.charge.cost(&request);
        let own = shared.own(shared.charge.key(&request).as_ref());
        let bucket = own.as_ref().unwrap_or(&shared.one);
        let now = CallContext::now();
        let (gcra, nanos) = (shared.policy.gcra, shared.since.nanos(now));
        if let Some(common) = &shared.common {
            let known = gcra
                .fits(cost)
                .then(|| common.at_once(bucket, gcra, nanos, cost));
            return self.in_common(request, (own, cost), now, known);
        }
        let waits = !shared.policy.max_wait().is_zero() && bucket.is_waited_for();
        let refused = if waits {
            Decision::NotYet { wait: 0 }
        } else {
            match bucket.meter.take(gcra, nanos, cost) {
                Ok(taken) => return self.pass(request, own, Some(taken)),
                Err(refused) => refused,
            }
        };
        self.not_now(request, own, cost, now, refused)
    }
}

impl<S, C: Clone, L: Clone> RateLimit<S, C, L> {
    #[inline]
    fn limit(&self, own: Option<Arc<Bucket>>) -> Limit<C, L> {
        Limit::new(self.shared.hold(), own)
    }

    /// Makes a call that passes, and has taken something unless the layer is off.
    #[inline]
    fn pass<Req>(
        &mut self,
        request: Req,
        own: Option<Arc<Bucket>>,
        taken: Option<Taken>,
    ) -> RateLimitFuture<S, C, L, Req>
    where
        S: Service<Req> + Clone,
    {
        let shared = &*self.shared;
        let attends = shared.policy.settings.obey.is_some() || shared.told.is_some();
        match self.inner.ready() {
            Some(inner) if !attends => RateLimitFuture::called(inner.call(request)),
            Some(inner) => {
                let future = GateFuture::Called {
                    future: inner.call(request),
                };
                RateLimitFuture::attended(future, None, self.limit(own))
            }
            None => self.not_ready(request, own, taken),
        }
    }

    /// Passes, asks, or is refused, where replicas share the limit; nothing is known of what never passes.
    fn in_common<Req>(
        &mut self,
        request: Req,
        (own, cost): (Option<Arc<Bucket>>, u32),
        now: Instant,
        known: Option<AtOnce>,
    ) -> RateLimitFuture<S, C, L, Req>
    where
        S: Service<Req> + Clone,
    {
        let refused = match known {
            None => Decision::Never,
            Some(AtOnce::Pass) => return self.pass(request, own, None),
            Some(AtOnce::Refused { wait }) if self.shared.policy.max_wait().is_zero() => {
                Decision::NotYet { wait }
            }
            Some(AtOnce::Refused { .. } | AtOnce::Ask) => {
                self.inner.release();
                let limit = self.limit(own);
                return match Waiting::begin((self.inner.clone(), request), (limit, cost), now) {
                    Ok(waiting) => RateLimitFuture::waits(waiting),
                    Err(rejection) => self.reject(rejection),
                };
            }
        };
        self.not_now(request, own, cost, now, refused)
    }

    fn reject<Req>(&self, rejection: Rejection) -> RateLimitFuture<S, C, L, Req>
    where
        S: Service<Req> + Clone,
    {
        let observer = self.shared.observer.as_ref();
        RateLimitFuture::refused(bound::reject(rejection, &CallContext::current(), observer))
    }

    /// Waits for the inner service, and gives back what it took if it is never called.
    #[cold]
    fn not_ready<Req>(
        &mut self,
        request: Req,
        own: Option<Arc<Bucket>>,
        taken: Option<Taken>,
    ) -> RateLimitFuture<S, C, L, Req>
    where
        S: Service<Req> + Clone,
    {
        let limit = self.limit(own);
        let unsent = taken.map(|taken| limit.unsent(taken));
        RateLimitFuture::attended(self.inner.call(request), unsent, limit)
    }

    /// Waits for its turn, or is refused.
    #[cold]
    fn not_now<Req>(
        &mut self,
        request: Req,
        own: Option<Arc<Bucket>>,
        cost: u32,
        now: Instant,
        decision: Decision,
    ) -> RateLimitFuture<S, C, L, Req>
    where
        S: Service<Req> + Clone,
    {
        // A place that the inner service has given us is held neither through a wait nor after a refusal.
        self.inner.release();
        let context = CallContext::current();
        let shared = &*self.shared;
        let rejection = match decision {
            Decision::NotYet { .. } if !shared.policy.max_wait().is_zero() => {
                let limit = self.limit(own);
                match Waiting::begin((self.inner.clone(), request), (limit, cost), now) {
                    Ok(waiting) => return RateLimitFuture::waits(waiting),
                    Err(rejection) => rejection,
                }
            }
            Decision::NotYet { wait } => {
                let bucket = own.as_ref().unwrap_or(&shared.one);
                shared.limited(&context, bucket, wait)
            }
            Decision::Never | Decision::Pass { .. } => too_costly(shared.name(&context)),
        };
        self.reject(rejection)
    }
}

impl<S: Clone, C, L> Clone for RateLimit<S, C, L>
where
    C: Clone,
    L: Clone,
{
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            shared: self.shared.clone(),
        }
    }
}

impl<S: fmt::Debug, C, L> fmt::Debug for RateLimit<S, C, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimit")
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}
