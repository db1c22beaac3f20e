//! The wiring of an attempt's limit.

use std::fmt;
use std::task::{Context, Poll};

use mamparo_core::gate::GateFuture;
use mamparo_core::shard::Spread;
use mamparo_core::{BoxError, CallContext, Gate};
use tower_service::Service;

use super::AttemptTimeoutFuture;
use super::layer::Shared;
use super::state::{By, limit};
use crate::wire::{BoundsAnswer, CarriesDeadline};

/// Bounds one attempt, and tells the next service what remains; see the [module](super).
pub struct AttemptTimeout<S, W> {
    inner: Gate<S>,
    shared: Spread<Shared<W>>,
}

impl<S, W> AttemptTimeout<S, W> {
    pub(super) const fn new(inner: S, shared: Spread<Shared<W>>) -> Self {
        Self {
            inner: Gate::new(inner),
            shared,
        }
    }
}

impl<S, W, Req> Service<Req> for AttemptTimeout<S, W>
where
    S: Service<Req> + Clone,
    S::Error: Into<BoxError>,
    W: CarriesDeadline<Req> + BoundsAnswer<S::Response> + Clone,
{
    type Response = W::Bounded;
    type Error = BoxError;
    type Future = AttemptTimeoutFuture<S, W, Req>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    #[inline]
    fn call(&mut self, mut request: Req) -> Self::Future {
        let now = CallContext::now();
        let must_be_over = CallContext::current_attempt_deadline();
        let (by, limit) = limit(now, self.shared.policy.timeout(), must_be_over);
        if let Some(deadline) = must_be_over {
            let remaining = deadline.remaining(now);
            self.shared.wire.write(&mut request, remaining);
        }
        let inner = match by {
            By::Spent => GateFuture::None,
            _ => {
                let _entered = limit.entered();
                self.inner.call(request)
            }
        };
        AttemptTimeoutFuture::new(inner, by, limit, self.shared.hold())
    }
}

impl<S: Clone, W> Clone for AttemptTimeout<S, W> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            shared: self.shared.clone(),
        }
    }
}

impl<S: fmt::Debug, W> fmt::Debug for AttemptTimeout<S, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AttemptTimeout")
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}
