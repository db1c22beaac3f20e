//! One operation, until its deadline.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use mamparo_core::clock::Instant;
use mamparo_core::gate::GateFuture;
use mamparo_core::shard::Held;
use mamparo_core::{BoxError, Deadline, Rejection, Scope};
use pin_project::pin_project;
use tower_service::Service;

use super::error::{cut, refused};
use super::layer::Shared;
use crate::bound::{Bounded, Operation, Parts, Scoped};
use crate::timer::Rare;
use crate::wire::BoundsAnswer;

/// The future of an operation that ends at its deadline.
#[pin_project]
#[must_use = "futures do nothing unless polled"]
pub struct DeadlineFuture<S: Service<Req>, W, Req>(#[pin] Bounded<S, Req, Called<W>>);

/// An operation that was called.
struct Called<W> {
    scope: Scope,
    at: Instant,
    shared: Held<Shared<W>>,
    /// What was never pending is not late, or blocks: no reason to look at the clock.
    waited: bool,
}

impl<S: Service<Req>, W, Req> DeadlineFuture<S, W, Req> {
    /// Runs a call that was made at that instant.
    #[inline]
    pub(super) fn new(
        inner: GateFuture<S, Req>,
        scope: Scope,
        at: Instant,
        shared: Held<Shared<W>>,
    ) -> Self {
        let called = Called {
            scope,
            at,
            shared,
            waited: false,
        };
        Self(Bounded::new(inner, called))
    }
}

impl<W> Scoped for Called<W> {
    type Timer = Rare;

    #[inline]
    fn enter<R>(&mut self, f: impl FnOnce() -> R) -> R {
        self.scope.enter(f)
    }

    #[inline]
    fn note_wait(&mut self) {
        self.waited = true;
    }
}

impl<W> Operation for Called<W> {
    type Wire = W;

    #[inline]
    fn scope(&self) -> &Scope {
        &self.scope
    }

    #[inline]
    fn parts(&mut self) -> Parts<'_, W> {
        Parts {
            scope: &mut self.scope,
            wire: &self.shared.wire,
            observer: self.shared.observer.as_ref(),
            late: self.shared.late.as_deref().filter(|_| self.waited),
        }
    }

    fn rejection(&self, cut_at: Option<Deadline>) -> Rejection {
        match cut_at {
            Some(deadline) => cut(&self.scope, deadline.remaining(self.at)),
            None => refused(&self.scope),
        }
    }
}

impl<S, W, Req> Future for DeadlineFuture<S, W, Req>
where
    S: Service<Req>,
    S::Error: Into<BoxError>,
    W: BoundsAnswer<S::Response>,
{
    type Output = Result<W::Bounded, BoxError>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.project().0.poll_operation(cx)
    }
}

impl<S: Service<Req>, W, Req> fmt::Debug for DeadlineFuture<S, W, Req> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeadlineFuture")
            .field("deadline", &self.0.scope().scope.deadline())
            .finish_non_exhaustive()
    }
}
