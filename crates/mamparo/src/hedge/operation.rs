//! What an operation keeps over all of its attempts, and what it makes of their ends.

use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll};

use mamparo_core::budget::Deposit;
use mamparo_core::clock::{self, Instant};
use mamparo_core::shard::Held;
use mamparo_core::{
    Answer, BoxError, Class, Classify, Kind, Nested, NotResent, ResponseHead, Verdict, What, chain,
};
use tokio::time::Sleep;
use tower_service::Service;

use super::arm::{Arm, End, Paid, Run, Scene, Why};
use super::error::too_late;
use super::layer::Shared;
use super::outcome::Attempted;
use super::state::{Course, Ended, Step, When};
use crate::bound::{poll_timer, reject};
use crate::replay::{NotKept, Replay, Safety, Superseded};
use crate::resend::{indeterminate, is_about, is_refusal, proven};

/// An attempt beside the first: in a place of its own, because it is large and rare.
type Beside<S, W> = Pin<Box<Arm<S, W>>>;

/// What an operation keeps over all of its attempts.
pub(super) struct Operation<S, P, Req>
where
    P: Replay<Req>,
    S: Service<P::Wire>,
{
    /// What later attempts are made with; none when there can't be any.
    pub(super) service: Option<S>,
    pub(super) held: Option<P::Held>,
    pub(super) scene: Scene,
    pub(super) safety: Safety,
    pub(super) course: Course,
    pub(super) next: Next,
    /// The first attempt, while it runs; blank afterwards.
    pub(super) first: Run,
    pub(super) later: Vec<Beside<S, P::Wire>>,
    /// The attempt to come, made before an answer was given up for it.
    pub(super) prepared: Option<Beside<S, P::Wire>>,
    pub(super) best: Option<Box<Attempted<S::Response>>>,
    pub(super) last_response: Option<Box<ResponseHead>>,
    /// Whether an attempt may have taken effect that was not safe to make twice.
    pub(super) in_doubt: bool,
    pub(super) _deposits: Option<(Deposit, Deposit)>,
    pub(super) shared: Held<Shared<P>>,
}

/// When another attempt is due.
#[derive(Clone, Copy, Debug)]
pub(super) enum Next {
    /// After the delay, which begins with the first attempt.
    AtDelay,
    /// At once, because an attempt failed so.
    Now(Kind),
    /// At an instant, for which no timer stands yet.
    At(Instant),
    /// When the timer says so.
    Armed,
    Never,
}

impl<S, P, Req> Operation<S, P, Req>
where
    P: Replay<Req> + Classify<S::Response> + Answer<S::Response>,
    S: Service<P::Wire> + Clone,
    S::Error: Into<BoxError>,
{
    /// Whether nothing was made, or is to be done, but the first attempt.
    pub(super) const fn is_alone(&self) -> bool {
        self.later.is_empty() && self.best.is_none()
    }

    /// Says what an attempt's result means.
    #[inline]
    pub(super) fn judge(&mut self, outcome: &Result<S::Response, BoxError>, sends: u32) -> Verdict {
        let mut verdict = self.shared.protocol.head(outcome.as_ref()).verdict;
        if let Err(error) = outcome {
            let about = is_about(error, self.scene.context.dependency());
            verdict = proven(verdict, sends <= 1 && about);
            // Its reader gave way to another attempt's: that is no failure of the dependency, nor of the request.
            if chain::find::<NotKept>(&**error).is_some()
                || chain::find::<Superseded>(&**error).is_some()
            {
                verdict = Verdict::IGNORED;
            }
        }
        self.report(What::AttemptEnded { verdict });
        verdict
    }

    /// The first attempt succeeded, and there was no other.
    #[inline]
    pub(super) fn succeeded(
        &mut self,
        outcome: Result<S::Response, BoxError>,
    ) -> Result<S::Response, BoxError> {
        if let (Some(latency), Some(started)) = (&self.shared.latency, self.first.started) {
            let now = clock::now();
            latency.record(now.saturating_duration_since(started), now);
        }
        let verdict = Verdict::SUCCESS;
        self.finish(Attempted { outcome, verdict }, None)
    }

    /// An attempt ended, and `run` tells which: returns what the caller gets, if that is clear by now.
    pub(super) fn ended(
        &mut self,
        run: &mut Run,
        outcome: Result<S::Response, BoxError>,
        verdict: Verdict,
    ) -> Option<Result<S::Response, BoxError>> {
        self.give_back_if_refused(run, &outcome, verdict);
        self.in_doubt |= indeterminate(verdict, self.safety);
        let remaining =
            (verdict.kind()).and_then(|_| self.scene.context.attempt_remaining(clock::now()));
        let ended = Ended {
            verdict,
            safety: self.safety,
            remaining,
        };
        let attempted = Attempted { outcome, verdict };
        let shared = &*self.shared;
        match self.course.ended(&shared.policy, ended) {
            Step::Settled(not_resent) => {
                self.settle(run, verdict);
                Some(self.finish(attempted, not_resent))
            }
            Step::Last(not_resent) => {
                let best = self.better(attempted);
                Some(self.finish(best, Some(not_resent)))
            }
            Step::Next(when) => self.go_on(attempted, when),
        }
    }

    /// An attempt that was refused on our side was not sent, so it cost nothing.
    fn give_back_if_refused(
        &mut self,
        run: &mut Run,
        outcome: &Result<S::Response, BoxError>,
        verdict: Verdict,
    ) {
        let dependency = self.scene.context.dependency();
        let refused = |error: &BoxError| is_refusal(error, dependency);
        if verdict == Verdict::IGNORED && outcome.as_ref().is_err_and(refused) {
            let first = run.number == 1;
            if let Some(spent) = run.spent.take() {
                spent.not_sent();
                self.scene.called -= 1;
            } else if first {
                self.scene.called -= 1;
            }
        }
    }

    /// The operation is decided: the other attempts are given up, and say how long a slow one takes at least.
    fn settle(&mut self, winner: &Run, verdict: Verdict) {
        self.next = Next::Never;
        self.in_doubt |= self.course.running > 0 && !self.safety.is_idempotent();
        let losers = mem::take(&mut self.later);
        let (Some(latency), Some(started)) = (&self.shared.latency, winner.started) else {
            return;
        };
        if verdict.class() != Class::Success {
            return;
        }
        let now = clock::now();
        latency.record(now.saturating_duration_since(started), now);
        // One that began later than the winner was given no time to show how slow it is.
        let later = losers.iter().map(|loser| loser.run.started);
        for loser in later.chain([self.first.started]).flatten() {
            if loser < started {
                latency.record(now.saturating_duration_since(loser), now);
            }
        }
    }

    /// Keeps the better of the results so far, and says when another attempt is due.
    fn go_on(
        &mut self,
        attempted: Attempted<S::Response>,
        when: When,
    ) -> Option<Result<S::Response, BoxError>> {
        let now = clock::now();
        let delay = || self.shared.delay(now);
        let next = match (when, attempted.verdict.kind()) {
            (When::Now, Some(kind)) => Next::Now(kind),
            (When::After(wait), _) => Next::At(now + wait),
            (When::AtDelay, _) if self.course.running == 0 => Next::At(now + delay()),
            (When::AtDelay, _) => self.next,
            (When::Now | When::Never, _) => Next::Never,
        };
        let best = self.better(attempted);
        self.next = next;
        let waits = self.course.running == 0 && matches!(next, Next::At(_));
        if !waits {
            self.best = Some(Box::new(best));
            return None;
        }
        // All that can refuse the next attempt comes before the answer is given up, and the wait after it.
        match self.prepare(now, best.verdict.kind()) {
            Ok(arm) => self.prepared = Some(arm),
            Err(reason) => return Some(self.finish(best, Some(reason))),
        }
        if let Ok(answer) = best.outcome {
            self.last_response = self.shared.protocol.give_up(answer).map(Box::new);
        }
        None
    }

    fn better(&mut self, attempted: Attempted<S::Response>) -> Attempted<S::Response> {
        match self.best.take() {
            Some(best) if best.rank() > attempted.rank() => *best,
            _ => attempted,
        }
    }

    /// Ready when another attempt is due.
    pub(super) fn poll_due(
        &mut self,
        mut timer: Pin<&mut Option<Sleep>>,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        let at = match self.next {
            Next::Never => return Poll::Pending,
            Next::Now(_) => return Poll::Ready(()),
            Next::At(at) => at,
            Next::AtDelay => {
                let now = clock::now();
                let delay = self.shared.delay(now);
                if delay.is_zero() {
                    return Poll::Ready(());
                }
                clock::later(self.first.started.unwrap_or(now), delay)
            }
            Next::Armed => {
                let Some(timer) = timer.as_pin_mut() else {
                    return Poll::Pending; // not reached: a timer stands where this says so
                };
                return poll_timer(timer, cx);
            }
        };
        match timer.as_mut().as_pin_mut() {
            Some(timer) => timer.reset(at),
            None => timer.set(Some(tokio::time::sleep_until(at))),
        }
        self.next = Next::Armed;
        let timer = timer.as_pin_mut();
        timer.map_or(Poll::Pending, |timer| poll_timer(timer, cx))
    }

    /// Begins another attempt; an error is why there is none, and what the caller gets if nothing else is under way.
    pub(super) fn begin(&mut self) -> Option<Result<S::Response, BoxError>> {
        let now = clock::now();
        let reason = match self.next {
            Next::Now(kind) => Some(kind),
            _ => None,
        };
        let prepared = match self.prepared.take() {
            Some(arm) => Ok(arm),
            None => self.prepare(now, reason),
        };
        self.next = Next::Never;
        match prepared {
            Ok(arm) => {
                self.course.begin();
                self.later.push(arm);
                if self.course.may_go_on() {
                    self.next = Next::At(clock::later(now, self.shared.delay(now)));
                }
                None
            }
            Err(reason) => {
                self.course.halt(reason);
                self.report(What::HedgeOff { reason });
                let best = self.best.take_if(|_| self.course.running == 0)?;
                Some(self.finish(*best, Some(reason)))
            }
        }
    }

    /// Pays for another attempt and makes its request.
    fn prepare(
        &mut self,
        now: Instant,
        reason: Option<Kind>,
    ) -> Result<Beside<S, P::Wire>, NotResent> {
        let settings = &self.shared.policy.settings;
        let context = &self.scene.context;
        let remaining = context.attempt_remaining(now);
        if remaining.is_some_and(|remaining| remaining < settings.min_attempt_time) {
            return Err(NotResent::DeadlineTooClose);
        }
        if settings.nested == Nested::Single && context.has_resent_inside() {
            return Err(NotResent::ResentInside);
        }
        let (number, so_far) = (self.course.begun + 1, self.course.begun - 1);
        let extra = self.shared.policy.extra.withdraw(now, None, so_far);
        let extra = extra.map_err(|_| NotResent::ExtraLoad)?;
        let budget = settings.budget.withdraw(now, context.tenant(), so_far);
        let budget = budget.map_err(|_| NotResent::BudgetExhausted)?;
        let held = self.held.take().ok_or(NotResent::BodyTooLarge)?;
        let more = number < self.scene.most;
        let protocol = &self.shared.protocol;
        let (mut wire, held) = if self.course.running > 0 {
            protocol.beside(held, more)?
        } else {
            protocol.again(held, more)?
        };
        self.held = held;
        protocol.number(&mut wire, number);
        let service = self.service.clone().ok_or(NotResent::BodyTooLarge)?;
        let why = Why {
            reason,
            delay: self.shared.delay(now),
        };
        let paid = Paid { budget, extra };
        Ok(Box::pin(Arm::new(service, number, wire, paid, why)))
    }

    /// Polls the attempts beside the first: returns what the caller gets, if that is clear by now.
    pub(super) fn poll_later(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Option<Result<S::Response, BoxError>> {
        let mut at = 0;
        while let Some(arm) = self.later.get_mut(at) {
            let beside = self.course.running.saturating_sub(1);
            let observer = self.shared.observer.as_ref();
            let polled = arm.as_mut().poll(&mut self.scene, beside, observer, cx);
            let Poll::Ready(end) = polled else {
                at += 1;
                continue;
            };
            let mut arm = self.later.remove(at);
            let mut run = arm.as_mut().take_run();
            // Its permits are back before anything is made of its answer.
            drop(arm);
            let (outcome, verdict) = self.told(end, run.sends);
            let result = self.ended(&mut run, outcome, verdict);
            if result.is_some() {
                return result;
            }
        }
        None
    }

    fn told(
        &mut self,
        end: End<S::Response>,
        sends: u32,
    ) -> (Result<S::Response, BoxError>, Verdict) {
        let error = match end {
            End::Sent(outcome) => {
                let verdict = self.judge(&outcome, sends);
                return (outcome, verdict);
            }
            End::NotReady(error) => error,
            End::TooLate => {
                let rejection = too_late(self.scene.context.dependency());
                reject(
                    rejection,
                    &self.scene.context,
                    self.shared.observer.as_ref(),
                )
            }
        };
        (Err(error), Verdict::IGNORED)
    }

    #[inline]
    pub(super) fn report(&self, what: What<'_>) {
        self.scene.report(self.shared.observer.as_ref(), what);
    }
}
