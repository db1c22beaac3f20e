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

use super::arm::{Arm, End, Paid, Run, Scene, Spent, Why};
use super::error::too_late;
use super::layer::Made;
use super::outcome::Attempted;
use super::state::{self, Course, Ended, Step, When};
use crate::bound::reject;
use crate::grpc::MethodId;
use crate::replay::{NotKept, Replay, Safety, Superseded};
use crate::resend::{indeterminate, is_about, is_refusal, proven};
use crate::timer;

/// An attempt beside the first: in a place of its own, because it is large and rare.
type Beside<S, W> = Pin<Box<Arm<S, W>>>;

/// What an operation keeps over all of its attempts.
pub(super) struct Operation<S, P, Req>
where
    P: Replay<Req>,
    S: Service<P::Wire>,
{
    pub(super) held: Option<P::Held>,
    pub(super) scene: Scene,
    pub(super) safety: Safety,
    pub(super) course: Course,
    pub(super) next: Next,
    /// What its service config says of the request's method.
    pub(super) method: Option<MethodId>,
    /// The first attempt, while it runs; blank afterwards.
    pub(super) first: Run,
    /// None while there is the first attempt only.
    pub(super) race: Option<Box<Race<S, P::Wire>>>,
    pub(super) _deposits: Option<(Deposit, Deposit)>,
    pub(super) made: Held<Made<S, P>>,
}

/// What an operation keeps once there is more to it than its first attempt.
pub(super) struct Race<S: Service<W>, W> {
    pub(super) later: Vec<Beside<S, W>>,
    /// The attempt to come, made before an answer was given up for it.
    prepared: Option<Beside<S, W>>,
    pub(super) best: Option<Attempted<S::Response>>,
    pub(super) last_response: Option<Box<ResponseHead>>,
    /// Whether an attempt may have taken effect that was not safe to make twice.
    pub(super) in_doubt: bool,
    /// Until when the server asked to send nothing; another attempt's failure does not shorten it.
    not_before: Option<Instant>,
    /// Whether an attempt that was never processed has been sent once more.
    pub(super) transparent: bool,
}

impl<S: Service<W>, W> Default for Race<S, W> {
    fn default() -> Self {
        Self {
            later: Vec::new(),
            prepared: None,
            best: None,
            last_response: None,
            in_doubt: false,
            not_before: None,
            transparent: false,
        }
    }
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
    pub(super) fn race(&mut self) -> &mut Race<S, P::Wire> {
        self.race.get_or_insert_default()
    }

    /// Says what an attempt's result means.
    #[inline]
    pub(super) fn judge(&mut self, outcome: &Result<S::Response, BoxError>, sends: u32) -> Verdict {
        let mut verdict = self.made.shared.protocol.head(outcome.as_ref()).verdict;
        if let Err(error) = outcome {
            let about = is_about(error, self.scene.scope.dependency());
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

    /// The first attempt succeeded, and there was no other: the caller gets its answer as it is.
    #[inline]
    pub(super) fn succeeded(&self) {
        self.pay_in(Verdict::SUCCESS);
        if let (Some(latency), Some(started)) = (&self.made.shared.latency, self.first.started) {
            let now = clock::now();
            latency.record(now.saturating_duration_since(started), now);
        }
        self.report_end(Verdict::SUCCESS);
    }

    /// An attempt ended, and `run` tells which: returns what the caller gets, if that is clear by now.
    pub(super) fn ended(
        &mut self,
        run: Run,
        spent: Option<Spent>,
        outcome: Result<S::Response, BoxError>,
        verdict: Verdict,
    ) -> Option<Result<S::Response, BoxError>> {
        let spent = match self.once_more(run, spent, verdict) {
            Ok(()) => return None,
            Err(spent) => spent,
        };
        if self.is_refused(&outcome, verdict) && !run.sent_before {
            let called = run.number == 1 || spent.is_some();
            self.scene.called -= u32::from(called);
            spent.map(Spent::not_sent).unwrap_or_default();
        }
        let in_doubt = indeterminate(verdict, self.safety);
        self.race().in_doubt |= in_doubt;
        let remaining =
            (verdict.kind()).and_then(|_| self.scene.scope.attempt_remaining(clock::now()));
        let ended = Ended {
            verdict,
            safety: self.safety,
            remaining,
            throttled: self.throttled(verdict),
        };
        let attempted = Attempted { outcome, verdict };
        let shared = &self.made.shared;
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

    /// Whether an attempt was refused on our side: it was not sent, so it cost nothing.
    fn is_refused(&self, outcome: &Result<S::Response, BoxError>, verdict: Verdict) -> bool {
        let dependency = self.scene.scope.dependency();
        let refused = |error: &BoxError| is_refusal(error, dependency);
        verdict == Verdict::IGNORED && outcome.as_ref().is_err_and(refused)
    }

    /// The operation is decided: the other attempts are given up, and say how long a slow one takes at least.
    fn settle(&mut self, winner: Run, verdict: Verdict) {
        self.next = Next::Never;
        if winner.number > 1 && verdict.class() == Class::Success {
            let attempt = winner.number;
            self.report(What::HedgeWon { attempt });
        }
        let doubled = self.course.running > 0 && !self.safety.is_idempotent();
        self.race().in_doubt |= doubled;
        let race = self.race();
        let losers = mem::take(&mut race.later);
        race.best = None;
        let (Some(latency), Some(started)) = (&self.made.shared.latency, winner.started) else {
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
        let delay = || self.made.shared.delay(self.method, now);
        let next = match (when, attempted.verdict.kind()) {
            (When::Now, Some(kind)) => Next::Now(kind),
            (When::After(wait), _) => Next::At(clock::later(now, wait)),
            (When::AtDelay, _) if self.course.running == 0 => Next::At(clock::later(now, delay())),
            (When::AtDelay, _) => self.next,
            (When::Now | When::Never, _) => Next::Never,
        };
        let next = self.not_earlier(next, when, now);
        let best = self.better(attempted);
        self.next = next;
        let waits = self.course.running == 0 && matches!(next, Next::At(_));
        if !waits {
            self.race().best = Some(best);
            return None;
        }
        // All that can refuse the next attempt comes before the answer is given up, and the wait after it.
        match self.prepare(now, best.verdict.kind()) {
            Ok(arm) => self.race().prepared = Some(arm),
            Err(reason) => return Some(self.finish(best, Some(reason))),
        }
        if let Ok(answer) = best.outcome {
            let head = self.made.shared.protocol.give_up(answer);
            self.race().last_response = head.map(Box::new);
        }
        None
    }

    /// Puts the next attempt off for as long as the server has asked in any answer so far.
    fn not_earlier(&mut self, next: Next, when: When, now: Instant) -> Next {
        let not_before = &mut self.race().not_before;
        if let When::After(wait) = when {
            *not_before = (*not_before).max(Some(clock::later(now, wait)));
        }
        match (next, *not_before) {
            (Next::Now(_), Some(until)) if until > now => Next::At(until),
            (Next::At(at), Some(until)) => Next::At(at.max(until)),
            _ => next,
        }
    }

    fn better(&mut self, attempted: Attempted<S::Response>) -> Attempted<S::Response> {
        match self.race().best.take() {
            Some(best) if best.rank() > attempted.rank() => best,
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
                let delay = self.made.shared.delay(self.method, now);
                if delay.is_zero() {
                    return Poll::Ready(());
                }
                clock::later(self.first.started.unwrap_or(now), delay)
            }
            Next::Armed => {
                let Some(timer) = timer.as_pin_mut() else {
                    return Poll::Pending; // not reached: a timer stands where this says so
                };
                return timer::poll(timer, cx);
            }
        };
        match timer.as_mut().as_pin_mut() {
            Some(timer) => timer.reset(at),
            None => timer.set(Some(tokio::time::sleep_until(at))),
        }
        self.next = Next::Armed;
        let timer = timer.as_pin_mut();
        timer.map_or(Poll::Pending, |timer| timer::poll(timer, cx))
    }

    /// Begins another attempt; an error is why there is none, and what the caller gets if nothing else is under way.
    pub(super) fn begin(&mut self) -> Option<Result<S::Response, BoxError>> {
        let now = clock::now();
        let reason = match self.next {
            Next::Now(kind) => Some(kind),
            _ => None,
        };
        let prepared = match self.race().prepared.take() {
            Some(arm) => Ok(arm),
            None => self.prepare(now, reason),
        };
        self.next = Next::Never;
        match prepared {
            Ok(arm) => {
                self.course.begin();
                self.race().later.push(arm);
                if self.course.may_hedge() {
                    self.next =
                        Next::At(clock::later(now, self.made.shared.delay(self.method, now)));
                }
                None
            }
            Err(reason) => {
                self.course.halt(reason);
                self.report(What::HedgeOff { reason });
                let over = self.course.running == 0;
                let best = self.race().best.take_if(|_| over)?;
                Some(self.finish(best, Some(reason)))
            }
        }
    }

    /// Pays for another attempt and makes its request.
    fn prepare(
        &mut self,
        now: Instant,
        reason: Option<Kind>,
    ) -> Result<Beside<S, P::Wire>, NotResent> {
        let settings = &self.made.shared.policy.settings;
        let context = &self.scene.scope;
        let throttle = self.made.shared.throttle();
        if throttle.is_some_and(|throttle| !throttle.allows()) {
            return Err(NotResent::Throttled);
        }
        let remaining = context.attempt_remaining(now);
        if remaining.is_some_and(|remaining| remaining < settings.min_attempt_time) {
            return Err(NotResent::DeadlineTooClose);
        }
        if settings.nested == Nested::Single && context.has_resent_inside() {
            return Err(NotResent::ResentInside);
        }
        let (number, so_far) = (self.course.begun + 1, self.course.begun - 1);
        let shared = &self.made.shared;
        let extra = match state::plan(shared.method(self.method)) {
            Some(_) => None,
            None => Some(shared.policy.extra.withdraw(now, None, so_far)),
        };
        let extra = extra.transpose().map_err(|_| NotResent::ExtraLoad)?;
        let budget = settings.budget.withdraw(now, context.tenant(), so_far);
        let budget = budget.map_err(|_| NotResent::BudgetExhausted)?;
        let held = self.held.take().ok_or(NotResent::BodyTooLarge)?;
        let more = number < self.scene.most || self.may_be_once_more();
        let protocol = &self.made.shared.protocol;
        let (mut wire, held) = if self.course.running > 0 {
            protocol.beside(held, more)?
        } else {
            protocol.again(held, more)?
        };
        self.held = held;
        protocol.number(&mut wire, number);
        let why = Why {
            reason,
            delay: self.made.shared.delay(self.method, now),
        };
        let paid = Paid { budget, extra };
        let service = self.made.another();
        Ok(Box::pin(Arm::new(service, number, (wire, paid), why, now)))
    }

    /// Polls the attempts beside the first: returns what the caller gets, if that is clear by now.
    pub(super) fn poll_later(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Option<Result<S::Response, BoxError>> {
        let mut at = 0;
        while let Some(race) = &mut self.race
            && let Some(arm) = race.later.get_mut(at)
        {
            let beside = self.course.running.saturating_sub(1);
            let observer = self.made.shared.observer.as_ref();
            let polled = arm.as_mut().poll(&mut self.scene, beside, observer, cx);
            let Poll::Ready(end) = polled else {
                at += 1;
                continue;
            };
            // Its permits are back before anything is made of its answer.
            let (run, spent) = race.later.remove(at).into_run();
            let (outcome, verdict) = self.told(end, run.sends);
            let result = self.ended(run, spent, outcome, verdict);
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
                let rejection = too_late(self.scene.scope.dependency());
                reject(
                    rejection,
                    &self.scene.scope.context(),
                    self.made.shared.observer.as_ref(),
                )
            }
        };
        (Err(error), Verdict::IGNORED)
    }

    #[inline]
    pub(super) fn report(&self, what: What<'_>) {
        self.scene.report(self.made.shared.observer.as_ref(), what);
    }
}
