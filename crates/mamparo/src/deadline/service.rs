//! The wiring of a client's deadline.

use std::fmt;
use std::task::{Context, Poll};
use std::time::Duration;

use mamparo_core::clock::Instant;
use mamparo_core::gate::GateFuture;
use mamparo_core::shard::Spread;
use mamparo_core::{BoxError, CallContext, Deadline, Event, Gate, LayerKind, Scope, What};
use tower_service::Service;

use super::DeadlineFuture;
use super::layer::Shared;
use crate::wire::codec::{Read, Remaining};
use crate::wire::{BoundsAnswer, CarriesDeadline};

/// Bounds a whole operation, its answer's body included; see the [module](super).
pub struct DeadlineService<S, W> {
    inner: Gate<S>,
    shared: Spread<Shared<W>>,
}

impl<S, W> DeadlineService<S, W> {
    pub(super) const fn new(inner: S, shared: Spread<Shared<W>>) -> Self {
        Self {
            inner: Gate::new(inner),
            shared,
        }
    }
}

impl<S, W, Req> Service<Req> for DeadlineService<S, W>
where
    S: Service<Req> + Clone,
    S::Error: Into<BoxError>,
    W: CarriesDeadline<Req> + BoundsAnswer<S::Response> + Clone,
{
    type Response = W::Bounded;
    type Error = BoxError;
    type Future = DeadlineFuture<S, W, Req>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    #[inline]
    fn call(&mut self, mut request: Req) -> Self::Future {
        let now = CallContext::now();
        let mut scope = Scope::join(LayerKind::Deadline, self.shared.dependency);
        self.shared.bound(&mut scope, &mut request, now);
        let inner = if scope
            .deadline()
            .is_some_and(|deadline| deadline.has_passed(now))
        {
            GateFuture::None
        } else {
            let _entered = scope.entered_at(now);
            self.inner.call(request)
        };
        DeadlineFuture::new(inner, scope, now, self.shared.hold())
    }
}

impl<W> Shared<W> {
    /// Bounds the operation by the smallest of all limits.
    #[inline]
    fn bound<Req>(&self, scope: &mut Scope, request: &mut Req, now: Instant)
    where
        W: CarriesDeadline<Req>,
    {
        scope.set_started(now);
        let methods = self.wire.limit(request);
        let read = self.wire.take(request);
        let bounds = if scope.deadline().is_none() && read.is_empty() && methods.is_none() {
            self.policy.own(now)
        } else {
            self.smallest(scope, (read, methods), now)
        };
        if let Some((operation, attempts)) = bounds {
            scope.set_deadline(operation, attempts);
        }
    }

    #[inline(never)] // most operations have the policy's limit and no other
    fn smallest(
        &self,
        scope: &Scope,
        (read, methods): (Read<'_>, Option<Duration>),
        now: Instant,
    ) -> Option<(Deadline, Deadline)> {
        if let Some(header) = read.malformed() {
            let what = What::MalformedDeadline { header };
            Event::report(self.observer.as_ref(), &scope.context(), what);
        }
        let inherited = scope.deadline().map(|deadline| deadline.remaining(now));
        let carried = read.remaining().and_then(Remaining::duration);
        let own = smaller(self.policy.limit(), methods);
        let remaining = smaller(smaller(own, inherited), carried)?;
        Some(self.policy.within_remaining(now, remaining))
    }
}

fn smaller(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

impl<S: Clone, W> Clone for DeadlineService<S, W> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            shared: self.shared.clone(),
        }
    }
}

impl<S: fmt::Debug, W> fmt::Debug for DeadlineService<S, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeadlineService")
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}
