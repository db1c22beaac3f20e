//! One request, until its deadline.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use mamparo_core::clock::Instant;
use mamparo_core::gate::GateFuture;
use mamparo_core::shard::Held;
use mamparo_core::{BoxError, Deadline, Reason, Rejection, Scope};
use pin_project::pin_project;
use tower_service::Service;

use super::error::{cut, refused};
use super::layer::Shared;
use crate::bound::{Bounded, Operation, Parts, Scoped};
use crate::timer::Rare;
use crate::wire::BoundsAnswer;

/// The future of a request whose handler is dropped at its deadline.
#[pin_project]
#[must_use = "futures do nothing unless polled"]
pub struct ServerDeadlineFuture<S: Service<Req>, W, Req>(#[pin] Bounded<S, Req, Arrived<W>>);

/// A request that has arrived.
struct Arrived<W> {
    scope: Scope,
    refusal: Option<Reason>,
    at: Instant,
    shared: Held<Shared<W>>,
}

impl<S: Service<Req>, W, Req> ServerDeadlineFuture<S, W, Req> {
    /// Runs the handler's call for a request that arrived at that instant.
    #[inline]
    pub(super) fn new(
        inner: GateFuture<S, Req>,
        refusal: Option<Reason>,
        scope: Scope,
        at: Instant,
        shared: Held<Shared<W>>,
    ) -> Self {
        let arrived = Arrived {
            scope,
            refusal,
            at,
            shared,
        };
        Self(Bounded::new(inner, arrived))
    }
}

impl<W> Scoped for Arrived<W> {
    type Timer = Rare;

    #[inline]
    fn enter<R>(&mut self, f: impl FnOnce() -> R) -> R {
        self.scope.enter(f)
    }
}

impl<W> Operation for Arrived<W> {
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
            late: None,
        }
    }

    fn rejection(&self, cut_at: Option<Deadline>) -> Rejection {
        match cut_at {
            Some(deadline) => cut(deadline.remaining(self.at)),
            None => refused(self.refusal.unwrap_or(Reason::DeadlineExceeded)),
        }
    }
}

impl<S, W, Req> Future for ServerDeadlineFuture<S, W, Req>
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

impl<S: Service<Req>, W, Req> fmt::Debug for ServerDeadlineFuture<S, W, Req> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerDeadlineFuture")
            .field("deadline", &self.0.scope().scope.deadline())
            .finish_non_exhaustive()
    }
}
