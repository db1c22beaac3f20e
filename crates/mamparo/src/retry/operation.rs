//! What an operation keeps over all of its attempts, and what it makes of their ends.

use std::task::{Context, Poll};
use std::time::Duration;

use mamparo_core::budget::{Deposit, Throttle, Withdrawal};
use mamparo_core::clock::{self, Instant};
use mamparo_core::shard::Held;
use mamparo_core::{
    BoxError, CallContext, Cause, Class, Classify, Event, Kind, NotResent, ResponseHead, Scope,
    Verdict, What,
};
use tower_service::Service;

use super::error::too_late;
use super::layer::Made;
use super::resending::Resending;
use super::state::{self, Allowance, Failed, Wait};
use super::{Answer, Ending, RetryError};
use crate::bound::reject;
use crate::grpc::{MethodConfig, MethodId};
use crate::replay::{Replay, Safety};
use crate::resend::{indeterminate, is_about, is_refusal, not_sent, proven};

/// The resend to come, the token that pays for it, and the failure that led to it.
///
/// Boxed, because it is large and rare, and a future is moved before it is polled.
pub(super) struct Next<W> {
    wire: W,
    /// None for a transparent resend, which costs nothing.
    withdrawal: Option<Withdrawal>,
    failed: Verdict,
    failed_at: Instant,
}

/// What a failed attempt leads to.
pub(super) enum Ended<Res, W> {
    /// The caller gets it.
    Operation(Result<Res, BoxError>),
    /// A resend is due after a wait.
    Attempt { wait: Duration, next: Box<Next<W>> },
}

/// What an operation keeps over all of its attempts.
pub(super) struct Operation<S, P, H> {
    pub(super) held: Option<H>,
    pub(super) scope: Scope,
    pub(super) plan: Plan,
    /// As many as had been sent when the current attempt began.
    pub(super) sends_before: u32,
    /// None until an attempt has failed.
    pub(super) resending: Option<Box<Resending<S>>>,
    pub(super) _deposit: Deposit,
    pub(super) made: Held<Made<S, P>>,
}

/// What is known of a request when it is called.
#[derive(Clone, Copy)]
pub(super) struct Plan {
    pub(super) safety: Safety,
    pub(super) allowance: Allowance,
    /// What its service config says of its method.
    pub(super) method: Option<MethodId>,
}

impl<W> Next<W> {
    const fn new(wire: W, withdrawal: Option<Withdrawal>, failed: Verdict, now: Instant) -> Self {
        Self {
            wire,
            withdrawal,
            failed,
            failed_at: now,
        }
    }
}

impl<S: Clone, P, H> Operation<S, P, H> {
    /// Says what an attempt's result means.
    #[inline]
    pub(super) fn judge<Res>(&self, outcome: &Result<Res, BoxError>) -> Verdict
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
    pub(super) fn failed<Req, Res>(
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
                self.schedule(wait, next.withdrawal.is_some(), kind, now);
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
        let (plan, attempt) = (self.plan, self.scope.attempt());
        let mut failed = Failed {
            attempt,
            verdict,
            safety: plan.safety,
            held: self.held.is_some(),
            remaining: self.scope.attempt_remaining(now),
            resent_inside: self.scope.has_resent_inside(),
            throttled: false,
        };
        let mut memory = self.resending().memory;
        let policy = &self.made.shared.policy;
        if self.made.shared.protocol.is_transparent()
            && state::is_transparent(policy, plan.allowance, memory, failed)
        {
            memory.transparent = true;
            // Its token, if it has one, still pays for this attempt.
            let wire = self.again(attempt, attempt > 1, memory.transparent)?;
            let resending = self.resending();
            (resending.memory, resending.sent) = (memory, true);
            return Ok((Wait::NONE, Next::new(wire, None, verdict, now)));
        }
        failed.throttled = self.throttled(verdict);
        let backoff = state::backoff(policy, self.method());
        let mut rng = fastrand::Rng::new();
        let decided = state::decide(
            (policy, backoff),
            plan.allowance,
            &mut memory,
            failed,
            &mut rng,
        );
        // Over, whatever follows: its place among the resends in flight is free.
        self.resending().in_flight = None;
        let wait = decided?;
        let policy = &self.made.shared.policy;
        let withdrawal = (policy.budget())
            .withdraw(now, self.scope.tenant(), attempt - 1)
            .map_err(|_| NotResent::BudgetExhausted)?;
        let wire = self.again(attempt + 1, true, memory.transparent)?;
        let resending = self.resending();
        (resending.memory, resending.sent) = (memory, false);
        Ok((wait, Next::new(wire, Some(withdrawal), verdict, now)))
    }

    /// Tells the throttle of a failure, and asks it whether there may be resends.
    fn throttled(&self, verdict: Verdict) -> bool {
        let Some(throttle) = self.throttle() else {
            return false;
        };
        if state::is_counted(self.plan.allowance, self.plan.safety, verdict) {
            throttle.failed();
        }
        !throttle.allows()
    }

    /// Makes the request again, as the attempt of that number; a later one may follow.
    fn again<Req>(
        &mut self,
        attempt: u32,
        numbered: bool,
        was_transparent: bool,
    ) -> Result<P::Wire, NotResent>
    where
        P: Replay<Req, Held = H>,
    {
        let protocol = &self.made.shared.protocol;
        let more = attempt < self.plan.allowance.attempts
            || (protocol.is_transparent() && !was_transparent);
        let held = self.held.take().ok_or(NotResent::BodyTooLarge)?;
        let (mut wire, held) = protocol.again(held, more)?;
        if numbered {
            protocol.number(&mut wire, attempt);
        }
        self.held = held;
        Ok(wire)
    }

    fn schedule(&mut self, wait: Wait, counts: bool, reason: Kind, now: Instant) {
        let attempt = self.scope.attempt();
        let most = self.plan.allowance.attempts;
        if !counts {
            self.report(What::SentTransparently { reason });
            self.scope.set_attempt(attempt, most, Cause::Transparent);
            return;
        }
        self.report(What::ResendScheduled {
            next: attempt + 1,
            reason,
            wait: wait.duration,
            hinted: wait.hinted,
            remaining: self.scope.attempt_remaining(now),
        });
        self.scope.set_attempt(attempt + 1, most, Cause::Retry);
    }

    /// Ready when the resend can be sent; an error is that it can't any more.
    pub(super) fn poll_ready<W>(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>>
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

    pub(super) fn resend<W>(&mut self, next: Option<Box<Next<W>>>) -> Option<S::Future>
    where
        S: Service<W>,
    {
        let Next {
            wire,
            withdrawal,
            failed_at,
            ..
        } = *next?;
        self.sends_before = self.scope.sends();
        let resending = self.resending.as_deref_mut()?;
        if let Some(withdrawal) = withdrawal {
            // Heard by the retries around this one, so it is said outside of its own context.
            CallContext::report_resend();
            resending.in_flight = Some(withdrawal.spend());
        }
        let pause = clock::now().saturating_duration_since(failed_at);
        Some(self.scope.enter(|| {
            CallContext::note_resend(pause);
            resending.service.call(wire)
        }))
    }

    /// The inner service failed before the resend could be made: the attempt was not sent.
    #[cold]
    pub(super) fn not_ready<W>(&mut self, error: BoxError, next: Option<Box<Next<W>>>) -> BoxError {
        let verdict = next.map_or(Verdict::IGNORED, |next| next.failed);
        let attempts = self.sent_so_far();
        self.report_end(verdict, attempts);
        let ending = Ending::new(attempts, None, false);
        not_sent(self.scope.dependency(), ending, self.last_response(), error)
    }

    /// Hands the last result to the caller, marked where there is something to say.
    #[inline]
    pub(super) fn finish<Res>(
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
        match verdict.class() {
            Class::Success => {
                if let Some(throttle) = self.throttle() {
                    throttle.succeeded();
                }
            }
            _ if attempts == 1 => self.count_unsent(&outcome, verdict),
            _ => {}
        }
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
        let indeterminate = indeterminate(verdict, self.plan.safety);
        let attempts = self.scope.attempt();
        let ending = Ending::new(attempts, not_resent, indeterminate);
        if attempts > 1 && verdict.class() == Class::Success {
            self.made.shared.policy.budget().note_recovered();
        }
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
                let ending = Ending::new(self.sent_so_far(), not_resent, false);
                let last = self.last_response();
                Err(not_sent(self.scope.dependency(), ending, last, error))
            }
            Err(error) => {
                let last = self.last_response();
                Err(RetryError::new(self.scope.dependency(), ending, last, error).into())
            }
        }
    }

    /// Counts an operation whose only attempt was refused on our side.
    #[cold]
    fn count_unsent<Res>(&self, outcome: &Result<Res, BoxError>, verdict: Verdict) {
        let dependency = self.scope.dependency();
        if verdict == Verdict::IGNORED
            && self.sent_so_far() == 0
            && outcome
                .as_ref()
                .is_err_and(|error| is_refusal(error, dependency))
        {
            self.made.shared.policy.budget().note_unsent();
        }
    }

    /// How many attempts were sent, where the current one was refused on our side.
    fn sent_so_far(&self) -> u32 {
        let sent = self.resending.as_deref().is_some_and(|it| it.sent);
        self.scope.attempt() - u32::from(!sent)
    }

    /// What the service config says of the request's method.
    fn method(&self) -> Option<&MethodConfig> {
        self.made.shared.config.as_ref()?.get(self.plan.method?)
    }

    fn throttle(&self) -> Option<&Throttle> {
        self.made.shared.config.as_ref()?.throttle()
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
