//! The wiring of a client's deadline.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use mamparo_core::clock::{self, Instant};
use mamparo_core::gate::GateFuture;
use mamparo_core::{BoxError, CallContext, Deadline, Event, Gate, LayerKind, What};
use tower_service::Service;

use super::DeadlineFuture;
use super::layer::Shared;
use crate::wire::codec::Remaining;
use crate::wire::{BoundsAnswer, CarriesDeadline};

/// Bounds a whole operation, its answer's body included; see the [module](super).
pub struct DeadlineService<S, W> {
    inner: Gate<S>,
    shared: Arc<Shared<W>>,
}

impl<S, W> DeadlineService<S, W> {
    pub(super) const fn new(inner: S, shared: Arc<Shared<W>>) -> Self {
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
    W: CarriesDeadline<Req> + BoundsAnswer<S::Response>,
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
        let now = clock::now();
        let mut context = CallContext::join(LayerKind::Deadline, self.shared.dependency);
        let remaining = self.shared.bound(&mut context, &mut request, now);
        let inner = if remaining == Some(Duration::ZERO) {
            GateFuture::None
        } else {
            let _entered = context.entered();
            self.inner.call(request)
        };
        DeadlineFuture::new(inner, context, now, Arc::clone(&self.shared))
    }
}

impl<W> Shared<W> {
    /// Bounds the operation by the smallest of all limits, and returns how long it may take.
    #[inline]
    fn bound<Req>(
        &self,
        context: &mut CallContext,
        request: &mut Req,
        now: Instant,
    ) -> Option<Duration>
    where
        W: CarriesDeadline<Req>,
    {
        context.set_started(now);
        let inherited = context.deadline().map(|deadline| deadline.remaining(now));
        let read = self.wire.take(request);
        let carried = read.remaining().and_then(Remaining::duration);
        let remaining = smaller(smaller(self.policy.limit(), inherited), carried);
        if let Some(remaining) = remaining {
            let reserve = self.policy.reserve_of(remaining);
            context.set_deadline(Deadline::after(now, remaining), reserve);
        }
        if let Some(header) = read.malformed() {
            let what = What::MalformedDeadline { header };
            Event::report(self.observer.as_ref(), context, what);
        }
        remaining
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
            shared: Arc::clone(&self.shared),
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
