//! One operation under way.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use mamparo_core::budget::{Deposit, Withdrawal};
use mamparo_core::clock::{self, Instant};
use mamparo_core::shard::Held;
use mamparo_core::{
    BoxError, CallContext, Cause, Class, Classify, Event, Kind, NotResent, ResponseHead, Scope,
    Verdict, What,
};
use pin_project::pin_project;
use tokio::time::Sleep;
use tower_service::Service;

use super::error::too_late;
use super::layer::Made;
use super::resending::Resending;
use super::state::{Allowance, Failed, Wait, decide};
use super::{Answer, Ending, RetryError};
use crate::bound::reject;
use crate::replay::{Replay, Safety};
use crate::resend::{indeterminate, is_about, is_refusal, not_sent, proven};

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

/// The resend to come, the token that pays for it, and the failure that led to it.
///
/// Boxed, because it is large and rare, and a future is moved before it is polled.
struct Next<W> {
    wire: W,
    withdrawal: Withdrawal,
    failed: Verdict,
    failed_at: Instant,
}

/// What a failed attempt leads to.
enum Ended<Res, W> {
    /// The caller gets it.
    Operation(Result<Res, BoxError>),
    /// A resend is due after a wait.
    Attempt { wait: Duration, next: Box<Next<W>> },
}

/// What an operation keeps over all of its attempts.
struct Operation<S, P, H> {
    held: Option<H>,
    scope: Scope,
    safety: Safety,
    allowance: Allowance,
    /// As many as had been sent when the current attempt began.
    sends_before: u32,
    /// None until an attempt has failed.
    resending: Option<Box<Resending<S>>>,
    _deposit: Deposit,
    made: Held<Made<S, P>>,
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
        plan: (Safety, Allowance, u32),
        made: Held<Made<S, P>>,
    ) -> Self {
        let (safety, allowance, sends_before) = plan;
        Self {
            state: State::Sending { future },
            operation: Operation {
                held,
                safety,
                allowance,
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

impl<S: Clone, P, H> Operation<S, P, H> {
    /// Says what an attempt's result means.
    #[inline]
    fn judge<Res>(&self, outcome: &Result<Res, BoxError>) -> Verdict
    where
        P: Classify<Res>,
    {
        let mut verdict = self.made.shared.protocol.head(outcome.as_ref()).verdict;
        if let Err(error) = outcome {
            let sends = self.scope.sends().saturating_sub(self.sends_before);
            verdict = proven(
                verdict,
                sends <= 1 && is_about(error, self.scope.dependency()),
            );
        }
        self.report(What::AttemptEnded { verdict });
        verdict
    }

    /// An attempt failed: its result goes to the caller, or a resend is due after a wait.
    #[cold]
    fn failed<Req, Res>(
        &mut self,
        outcome: Result<Res, BoxError>,
        verdict: Verdict,
        kind: Kind,
    ) -> Ended<Res, P::Wire>
    where
        P: Replay<Req, Held = H> + Classify<Res> + Answer<Res>,
    {
        let now = clock::now();
        match self.prepare(verdict, now) {
            Ok((wait, next)) => {
                self.schedule(wait, kind, now);
                // Dropped before the wait, so that its connection is free meanwhile.
                if let Ok(answer) = outcome {
                    let head = self.made.shared.protocol.give_up(answer);
                    self.resending().last_response = head.map(Box::new);
                }
                Ended::Attempt {
                    wait: wait.duration,
                    next: Box::new(next),
                }
            }
            Err(reason) => {
                self.report(What::NotResent { verdict, reason });
                Ended::Operation(self.finish(outcome, verdict, Some(reason)))
            }
        }
    }

    /// Decides, makes the request again and reserves a token: all that can refuse comes before the wait.
    fn prepare<Req>(
        &mut self,
        verdict: Verdict,
        now: Instant,
    ) -> Result<(Wait, Next<P::Wire>), NotResent>
    where
        P: Replay<Req, Held = H>,
    {
        let remaining = self.scope.attempt_remaining(now);
        let resending = self.resending();
        resending.in_flight = None;
        let mut memory = resending.memory;
        let shared = &self.made.shared;
        let attempt = self.scope.attempt();
        let failed = Failed {
            attempt,
            verdict,
            safety: self.safety,
            held: self.held.is_some(),
            remaining,
            resent_inside: self.scope.has_resent_inside(),
        };
        let mut rng = fastrand::Rng::new();
        let wait = decide(
            &shared.policy,
            self.allowance,
            &mut memory,
            failed,
            &mut rng,
        )?;
        let withdrawal = (shared.policy.budget())
            .withdraw(now, self.scope.tenant(), attempt - 1)
            .map_err(|_| NotResent::BudgetExhausted)?;
        let held = self.held.take().ok_or(NotResent::BodyTooLarge)?;
        let (mut wire, held) = shared
            .protocol
            .again(held, attempt + 1 < self.allowance.attempts)?;
        self.held = held;
        shared.protocol.number(&mut wire, attempt + 1);
        self.resending().memory = memory;
        let next = Next {
            wire,
            withdrawal,
            failed: verdict,
            failed_at: now,
        };
        Ok((wait, next))
    }

    fn schedule(&mut self, wait: Wait, reason: Kind, now: Instant) {
        let next = self.scope.attempt() + 1;
        self.report(What::ResendScheduled {
            next,
            reason,
            wait: wait.duration,
            hinted: wait.hinted,
            remaining: self.scope.attempt_remaining(now),
        });
        self.scope
            .set_attempt(next, self.allowance.attempts, Cause::Retry);
    }

    /// Ready when the resend can be sent; an error is that it can't any more.
    fn poll_ready<W>(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>>
    where
        S: Service<W>,
        S::Error: Into<BoxError>,
    {
        // The wait had fitted, but a busy machine may wake us long after it, and readiness may take its time.
        if self.scope.attempt_remaining(clock::now()) == Some(Duration::ZERO) {
            let observer = self.made.shared.observer.as_ref();
            let rejection = too_late(self.scope.dependency());
            return Poll::Ready(Err(reject(rejection, &self.scope.context(), observer)));
        }
        let Some(resending) = &mut self.resending else {
            return Poll::Pending; // not reached: an attempt has failed
        };
        self.scope
            .enter(|| resending.service.poll_ready(cx))
            .map_err(Into::into)
    }

    fn resend<W>(&mut self, next: Option<Box<Next<W>>>) -> Option<S::Future>
    where
        S: Service<W>,
    {
        let Next {
            wire,
            withdrawal,
            failed_at,
            ..
        } = *next?;
        // Heard by the retries around this one, so it is said outside of its own context.
        CallContext::report_resend();
        self.sends_before = self.scope.sends();
        let resending = self.resending.as_deref_mut()?;
        resending.in_flight = Some(withdrawal.spend());
        let pause = clock::now().saturating_duration_since(failed_at);
        Some(self.scope.enter(|| {
            CallContext::note_resend(pause);
            resending.service.call(wire)
        }))
    }

    /// The inner service failed before the resend could be made: the attempt was not sent.
    #[cold]
    fn not_ready<W>(&mut self, error: BoxError, next: Option<Box<Next<W>>>) -> BoxError {
        let verdict = next.map_or(Verdict::IGNORED, |next| next.failed);
        let attempts = self.scope.attempt() - 1;
        self.report_end(verdict, attempts);
        let ending = Ending::new(attempts, None, false);
        not_sent(self.scope.dependency(), ending, self.last_response(), error)
    }

    /// Hands the last result to the caller, marked where there is something to say.
    #[inline]
    fn finish<Res>(
        &mut self,
        outcome: Result<Res, BoxError>,
        verdict: Verdict,
        not_resent: Option<NotResent>,
    ) -> Result<Res, BoxError>
    where
        P: Answer<Res>,
    {
        let attempts = self.scope.attempt();
        self.report_end(verdict, attempts);
        if attempts == 1 && not_resent.is_none() {
            return outcome;
        }
        self.mark(outcome, verdict, not_resent)
    }

    #[cold]
    fn mark<Res>(
        &mut self,
        outcome: Result<Res, BoxError>,
        verdict: Verdict,
        not_resent: Option<NotResent>,
    ) -> Result<Res, BoxError>
    where
        P: Answer<Res>,
    {
        let indeterminate = indeterminate(verdict, self.safety);
        let attempts = self.scope.attempt();
        let ending = Ending::new(attempts, not_resent, indeterminate);
        match outcome {
            Ok(mut answer) => {
                self.made.shared.protocol.mark(&mut answer, ending);
                Ok(answer)
            }
            Err(error)
                if verdict == Verdict::IGNORED && is_refusal(&error, self.scope.dependency()) =>
            {
                let resending = self.resending.as_deref_mut();
                if let Some(in_flight) = resending.and_then(|it| it.in_flight.take()) {
                    in_flight.not_sent();
                }
                let ending = Ending::new(attempts - 1, not_resent, false);
                let last = self.last_response();
                Err(not_sent(self.scope.dependency(), ending, last, error))
            }
            Err(error) => {
                let last = self.last_response();
                Err(RetryError::new(self.scope.dependency(), ending, last, error).into())
            }
        }
    }

    /// What is kept for the attempts to come, from the first failure on.
    fn resending(&mut self) -> &mut Resending<S> {
        let made = &self.made;
        (self.resending).get_or_insert_with(|| Box::new(Resending::new(made.another())))
    }

    fn last_response(&mut self) -> Option<Box<ResponseHead>> {
        self.resending.as_deref_mut()?.last_response.take()
    }

    #[inline]
    fn report_end(&self, verdict: Verdict, attempts: u32) {
        if self.made.shared.observer.is_some() {
            let now = clock::now();
            let since = |started| now.saturating_duration_since(started);
            self.report(What::OperationEnded {
                verdict,
                attempts,
                elapsed: self.scope.started().map(since).unwrap_or_default(),
            });
        }
    }

    #[inline]
    fn report(&self, what: What<'_>) {
        if let Some(observer) = &self.made.shared.observer {
            Event::report(Some(observer), &self.scope.context(), what);
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
