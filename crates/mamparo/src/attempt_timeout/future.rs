//! One attempt, until its limit.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use mamparo_core::gate::GateFuture;
use mamparo_core::shard::Held;
use mamparo_core::{AttemptLimit, BoxError, CallContext, Scope};
use pin_project::pin_project;
use tower_service::Service;

use super::error::reached;
use super::layer::Shared;
use super::state::By;
use crate::bound::{self, Bounded, Over, Scoped, failed_by_cut, was_cut};
use crate::timer::Usual;
use crate::wire::{BodyLimits, BoundsAnswer};

/// The future of an attempt that ends at its limit.
#[pin_project]
#[must_use = "futures do nothing unless polled"]
pub struct AttemptTimeoutFuture<S: Service<Req>, W, Req>(#[pin] Bounded<S, Req, Begun<W>>);

/// An attempt that has begun.
struct Begun<W> {
    by: By,
    limit: AttemptLimit,
    shared: Held<Shared<W>>,
}

impl<S: Service<Req>, W, Req> AttemptTimeoutFuture<S, W, Req> {
    /// Runs an attempt.
    #[inline]
    pub(super) fn new(
        inner: GateFuture<S, Req>,
        by: By,
        limit: AttemptLimit,
        shared: Held<Shared<W>>,
    ) -> Self {
        let begun = Begun { by, limit, shared };
        Self(Bounded::new(inner, begun))
    }
}

impl<W> Scoped for Begun<W> {
    type Timer = Usual;

    #[inline]
    fn enter<R>(&mut self, f: impl FnOnce() -> R) -> R {
        self.limit.enter(f)
    }
}

impl<S, W, Req> Future for AttemptTimeoutFuture<S, W, Req>
where
    S: Service<Req>,
    S::Error: Into<BoxError>,
    W: BoundsAnswer<S::Response>,
{
    type Output = Result<W::Bounded, BoxError>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut call = self.project().0;
        let cut = call.scope().limit.cut();
        let result = ready!(call.as_mut().poll(cut, cx));
        let Begun { by, limit, shared } = call.scope();
        let must_be_over = CallContext::current_attempt_deadline;
        let (by, sent) = match result {
            Ok(answer) if was_cut(&shared.wire, &answer, must_be_over) => (By::Deadline, true),
            Ok(answer) => return Poll::Ready(Ok(shared.bound(answer))),
            Err(Over::Failed(error)) => {
                let error = error.into();
                if !failed_by_cut(&error, must_be_over()) {
                    return Poll::Ready(Err(error));
                }
                (By::Deadline, true)
            }
            Err(Over::Cut { sent }) => (*by, sent),
            Err(Over::Refused) => (*by, false),
        };
        Poll::Ready(Err(shared.reject(by, limit.timeout(), sent)))
    }
}

impl<W> Shared<W> {
    #[inline]
    fn bound<Res>(&self, answer: Res) -> W::Bounded
    where
        W: BoundsAnswer<Res>,
    {
        self.wire.bound(answer, || {
            let context = CallContext::current();
            BodyLimits::default()
                .within(Scope::of(context))
                .dependency(self.name(&context))
                .until(context.attempt_deadline())
                .idle(self.policy.body_idle())
                .observer(self.observer.clone())
        })
    }

    #[cold]
    fn reject(&self, by: By, limit: Duration, sent: bool) -> BoxError {
        let context = CallContext::current();
        let rejection = reached(by, limit, self.name(&context), sent);
        bound::reject(rejection, &context, self.observer.as_ref())
    }
}

impl<S: Service<Req>, W, Req> fmt::Debug for AttemptTimeoutFuture<S, W, Req> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AttemptTimeoutFuture")
            .field("limit", &self.0.scope().limit)
            .finish_non_exhaustive()
    }
}
