//! One operation under way.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use mamparo_core::shard::Held;
use mamparo_core::{BoxError, Class, Classify, Scope};
use pin_project::pin_project;
use tokio::time::Sleep;
use tower_service::Service;

use super::Answer;
use super::layer::Made;
use super::operation::{Ended, Next, Operation, Plan};
use crate::replay::Replay;

/// The future of one operation, with all its attempts and waits.
#[pin_project]
#[must_use = "futures do nothing unless polled"]
pub struct RetryFuture<S, P, Req>
where
    P: Replay<Req>,
    S: Service<P::Wire>,
{
    #[pin]
    state: State<S::Future, P::Wire>,
    operation: Operation<S, P, P::Held>,
}

#[pin_project(project = StateProjected)]
enum State<F, W> {
    Sending {
        #[pin]
        future: F,
    },
    Waiting {
        #[pin]
        sleep: Sleep,
        next: Option<Box<Next<W>>>,
    },
    Readying {
        next: Option<Box<Next<W>>>,
    },
}

impl<S, P, Req> RetryFuture<S, P, Req>
where
    P: Replay<Req>,
    S: Service<P::Wire>,
{
    #[inline]
    pub(super) fn new(
        future: S::Future,
        held: Option<P::Held>,
        scope: Scope,
        (plan, sends_before): (Plan, u32),
        made: Held<Made<S, P>>,
    ) -> Self {
        Self {
            state: State::Sending { future },
            operation: Operation {
                held,
                plan,
                sends_before,
                resending: None,
                _deposit: made.shared.policy.budget().deposit(scope.tenant()),
                scope,
                made,
            },
        }
    }
}

impl<S, P, Req> Future for RetryFuture<S, P, Req>
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
        loop {
            let next = match this.state.as_mut().project() {
                StateProjected::Sending { future } => {
                    let entered = operation.scope.entered();
                    let polled = future.poll(cx);
                    drop(entered);
                    let outcome = ready!(polled).map_err(Into::into);
                    let verdict = operation.judge(&outcome);
                    let Class::Failure(kind) = verdict.class() else {
                        return Poll::Ready(operation.finish(outcome, verdict, None));
                    };
                    match operation.failed(outcome, verdict, kind) {
                        Ended::Operation(result) => return Poll::Ready(result),
                        Ended::Attempt { wait, next } if wait.is_zero() => {
                            State::Readying { next: Some(next) }
                        }
                        Ended::Attempt { wait, next } => State::Waiting {
                            sleep: tokio::time::sleep(wait),
                            next: Some(next),
                        },
                    }
                }
                StateProjected::Waiting { sleep, next } => {
                    ready!(sleep.poll(cx));
                    State::Readying { next: next.take() }
                }
                StateProjected::Readying { next } => {
                    if let Err(error) = ready!(operation.poll_ready(cx)) {
                        return Poll::Ready(Err(operation.not_ready(error, next.take())));
                    }
                    match operation.resend(next.take()) {
                        Some(future) => State::Sending { future },
                        None => return Poll::Pending, // not reached: each state is left once
                    }
                }
            };
            this.state.set(next);
        }
    }
}

impl<S, P, Req> fmt::Debug for RetryFuture<S, P, Req>
where
    P: Replay<Req>,
    S: Service<P::Wire>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.state {
            State::Sending { .. } => "sending",
            State::Waiting { .. } => "waiting",
            State::Readying { .. } => "readying",
        };
        f.debug_struct("RetryFuture")
            .field("state", &state)
            .field("attempt", &self.operation.scope.attempt())
            .finish_non_exhaustive()
    }
}
