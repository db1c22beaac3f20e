//! One operation under way.

use std::fmt;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use mamparo_core::{Answer, BoxError, Class, Classify, Verdict};
use pin_project::pin_project;
use tokio::time::Sleep;
use tower_service::Service;

use super::arm::Run;
use super::operation::Operation;
use crate::replay::Replay;

/// The future of one operation, with all its attempts.
#[pin_project]
#[must_use = "futures do nothing unless polled"]
pub struct HedgeFuture<S, P, Req>
where
    P: Replay<Req>,
    S: Service<P::Wire>,
{
    /// The first attempt, until it ends.
    #[pin]
    pub(super) first: Option<S::Future>,
    /// Made once the first attempt was pending.
    #[pin]
    pub(super) timer: Option<Sleep>,
    pub(super) operation: Operation<S, P, Req>,
}

impl<S, P, Req> Future for HedgeFuture<S, P, Req>
where
    P: Replay<Req> + Classify<S::Response> + Answer<S::Response>,
    S: Service<P::Wire> + Clone,
    S::Error: Into<BoxError>,
{
    type Output = Result<S::Response, BoxError>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let operation = this.operation;
        if let Some(first) = this.first.as_mut().as_pin_mut() {
            operation.scene.turn_to(1);
            let scene = &mut operation.scene;
            if let Poll::Ready(outcome) = operation.first.within(scene, || first.poll(cx)) {
                this.first.set(None);
                let outcome = outcome.map_err(Into::into);
                let verdict = operation.judge(&outcome, operation.first.sends);
                if verdict.class() == Class::Success && operation.race.is_none() {
                    operation.succeeded();
                    return Poll::Ready(outcome);
                }
                if let Some(result) = operation.first_ended(outcome, verdict) {
                    return Poll::Ready(result);
                }
            }
        }
        match operation.poll_others(this.timer.as_mut(), cx) {
            Poll::Ready(result) => {
                // Given up in the same poll: a loser's permits are back before the winner is heard of.
                this.first.set(None);
                this.timer.set(None);
                Poll::Ready(result)
            }
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S, P, Req> Operation<S, P, Req>
where
    P: Replay<Req> + Classify<S::Response> + Answer<S::Response>,
    S: Service<P::Wire> + Clone,
    S::Error: Into<BoxError>,
{
    #[cold]
    fn first_ended(
        &mut self,
        outcome: Result<S::Response, BoxError>,
        verdict: Verdict,
    ) -> Option<Result<S::Response, BoxError>> {
        let run = mem::replace(&mut self.first, Run::numbered(1));
        self.ended(run, None, outcome, verdict)
    }

    /// Polls the attempts beside the first, and begins another when it is due.
    fn poll_others(
        &mut self,
        mut timer: Pin<&mut Option<Sleep>>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<S::Response, BoxError>> {
        // Ends: each turn begins an attempt, of which there are only so many, or halts.
        loop {
            if let Some(result) = self.poll_later(cx) {
                return Poll::Ready(result);
            }
            ready!(self.poll_due(timer.as_mut(), cx));
            if let Some(result) = self.begin() {
                return Poll::Ready(result);
            }
        }
    }
}

impl<S, P, Req> fmt::Debug for HedgeFuture<S, P, Req>
where
    P: Replay<Req>,
    S: Service<P::Wire>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HedgeFuture")
            .field("course", &self.operation.course)
            .finish_non_exhaustive()
    }
}
