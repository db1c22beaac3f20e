//! The wiring of a server's deadline.

use std::fmt;
use std::task::{Context, Poll};

use mamparo_core::clock::{self, Instant};
use mamparo_core::gate::GateFuture;
use mamparo_core::shard::Spread;
use mamparo_core::{BoxError, CallContext, Deadline, Event, Gate, Reason, Scope, What};
use tower_service::Service;

use super::ServerDeadlineFuture;
use super::layer::Shared;
use super::state::{Grant, grant};
use crate::wire::codec::Admission;
use crate::wire::{BoundsAnswer, CarriesDeadline};

/// Bounds a handler and its response's body by the caller's deadline; see the [module](super).
pub struct ServerDeadline<S, W> {
    inner: Gate<S>,
    shared: Spread<Shared<W>>,
}

impl<S, W> ServerDeadline<S, W> {
    pub(super) const fn new(inner: S, shared: Spread<Shared<W>>) -> Self {
        Self {
            inner: Gate::new(inner),
            shared,
        }
    }
}

impl<S, W, Req> Service<Req> for ServerDeadline<S, W>
where
    S: Service<Req> + Clone,
    S::Error: Into<BoxError>,
    W: CarriesDeadline<Req> + BoundsAnswer<S::Response> + Clone,
{
    type Response = W::Bounded;
    type Error = BoxError;
    type Future = ServerDeadlineFuture<S, W, Req>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    #[inline]
    fn call(&mut self, mut request: Req) -> Self::Future {
        let now = clock::now();
        let mut context = self.shared.context(&request);
        let refusal = self.shared.admit(&mut request, &mut context, now).err();
        let mut scope = Scope::of(context);
        let inner = match refusal {
            None => {
                let _entered = scope.entered_at(now);
                self.inner.call(request)
            }
            Some(_) => GateFuture::None,
        };
        ServerDeadlineFuture::new(inner, refusal, scope, now, self.shared.hold())
    }
}

impl<W> Shared<W> {
    /// The handler's context before its deadline is known: no operation is open in it, so that a call made in the
    /// handler begins one. What another server layer has set further out stays.
    #[inline]
    fn context<Req>(&self, request: &Req) -> CallContext
    where
        W: CarriesDeadline<Req>,
    {
        let outer = CallContext::current();
        let context = CallContext::EMPTY
            .with_tenant(outer.tenant())
            .with_upstream_attempt(self.wire.attempt(request));
        match outer.deadline() {
            Some(deadline) => context.with_deadline(deadline),
            None => context,
        }
    }

    /// Grants the request its time, and takes the headers off that say how much; refused with a reason.
    #[inline]
    fn admit<Req>(
        &self,
        request: &mut Req,
        context: &mut CallContext,
        now: Instant,
    ) -> Result<(), Reason>
    where
        W: CarriesDeadline<Req>,
    {
        let read = self.wire.read(request);
        if let Some(header) = read.malformed() {
            self.report(context, What::MalformedDeadline { header });
            if self.policy.refuses_malformed() {
                return Err(Reason::MalformedDeadline);
            }
        }
        let admission = self.skew.admit(&read);
        if let Admission::Doubted(_) = admission {
            self.report(context, What::SkewSuspected);
        }
        let Grant {
            limit,
            clamped_from,
        } = grant(self.policy, admission);
        *context = context.with_deadline(Deadline::after(now, limit));
        if let Some(asked) = clamped_from {
            let granted = limit;
            self.report(context, What::DeadlineClamped { asked, granted });
        }
        if context.deadline().is_some_and(|d| d.has_passed(now)) {
            return Err(Reason::DeadlineExceeded);
        }
        if !self.policy.keeps_headers() {
            self.wire.strip(request);
        }
        Ok(())
    }

    fn report(&self, context: &CallContext, what: What<'_>) {
        Event::report(self.observer.as_ref(), context, what);
    }
}

impl<S: Clone, W> Clone for ServerDeadline<S, W> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            shared: self.shared.clone(),
        }
    }
}

impl<S: fmt::Debug, W> fmt::Debug for ServerDeadline<S, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerDeadline")
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}
