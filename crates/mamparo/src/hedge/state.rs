//! The decision: what does the end of one attempt mean for the others, and when is another due?

use std::time::Duration;

use mamparo_core::{Class, Nested, NotResent, Resend, Verdict};

use super::config::HedgePolicy;
use crate::grpc::{HedgePlan, MethodConfig, Resends};
use crate::replay::Safety;
use crate::resend::once;

/// How an operation has gone so far.
#[derive(Clone, Debug)]
pub(super) struct Course {
    /// Attempts that were begun, the original included.
    pub(super) begun: u32,
    /// As many of them are under way.
    pub(super) running: u32,
    /// As many may be begun.
    most: u32,
    /// Why no more are begun.
    halted: Option<NotResent>,
    /// The kinds of failure that allow one resend and have had it, a bit each.
    once: u16,
    /// Whether attempts run side by side; else one follows another, after proof that that was never processed.
    beside: bool,
}

/// What is known when an attempt has ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended {
    /// What its result means.
    pub(super) verdict: Verdict,
    /// What makes the request safe to send again, or not.
    pub(super) safety: Safety,
    /// What remains until an attempt must be over; none without a deadline.
    pub(super) remaining: Option<Duration>,
    /// Whether too many requests have failed of late.
    pub(super) throttled: bool,
}

/// What the end of an attempt leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The caller gets it: it is a success, or no attempt could do better. The others are given up.
    Settled(Option<NotResent>),
    /// The caller gets the best result so far: nothing is under way, and nothing follows.
    Last(NotResent),
    /// Its result is kept, while others run or follow.
    Next(When),
}

/// When another attempt is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    /// At once.
    Now,
    /// After that time.
    After(Duration),
    /// When it would have been anyway.
    AtDelay,
    /// Not any more.
    Never,
}

impl Course {
    /// The original was begun; `halted` says why no other will be, where that is known.
    pub(super) const fn begun(most: u32, halted: Option<NotResent>) -> Self {
        Self {
            begun: 1,
            running: 1,
            most,
            halted,
            once: 0,
            beside: true,
        }
    }

    /// No attempt is begun while another is under way: the request is not safe to be made twice.
    pub(super) const fn one_by_one(mut self) -> Self {
        self.beside = false;
        self
    }

    /// Whether another attempt may be begun while those before it are under way.
    pub(super) const fn may_hedge(&self) -> bool {
        self.beside && self.may_go_on()
    }

    /// Whether another attempt may be begun.
    pub(super) const fn may_go_on(&self) -> bool {
        self.halted.is_none() && self.begun < self.most
    }

    /// Why no more attempts are begun.
    pub(super) const fn halted(&self) -> Option<NotResent> {
        match self.halted {
            None if self.begun >= self.most => Some(NotResent::AttemptsExhausted),
            reason => reason,
        }
    }

    /// Another attempt is begun.
    pub(super) const fn begin(&mut self) {
        self.begun += 1;
        self.running += 1;
    }

    /// No more attempts are begun; those under way run on.
    pub(super) const fn halt(&mut self, reason: NotResent) {
        if self.halted.is_none() {
            self.halted = Some(reason);
        }
    }

    /// An attempt ended.
    pub(super) fn ended(&mut self, policy: &HedgePolicy, ended: Ended) -> Step {
        self.running = self.running.saturating_sub(1);
        let when = match self.meaning(policy, ended) {
            Ok(when) => when,
            Err(settled) => return Step::Settled(settled),
        };
        match self.halted() {
            Some(reason) if self.running == 0 => Step::Last(reason),
            Some(_) => Step::Next(When::Never),
            None => Step::Next(when),
        }
    }

    /// When the next attempt is due, as far as this one's end tells; an error is that the operation ends with it.
    fn meaning(&mut self, policy: &HedgePolicy, ended: Ended) -> Result<When, Option<NotResent>> {
        let verdict = ended.verdict;
        match verdict.class() {
            Class::Success => return Err(None),
            // Refused on our side: what refused it would refuse the next, and says nothing of those under way.
            Class::Ignored => return Ok(self.stop(NotResent::NotRetryable)),
            Class::Failure(_) => {}
        }
        let allowed = allows(policy, ended.safety, verdict);
        // A status that ends the call does so, whatever the server says of sending it again.
        if verdict.is_forbidden() && (allowed || verdict.resend() == Resend::Never) {
            return Ok(self.stop(NotResent::Forbidden));
        }
        if !allowed {
            return Err(Some(match verdict.resend() {
                Resend::IfIdempotent => NotResent::NotIdempotent,
                _ => NotResent::NotRetryable,
            }));
        }
        if self.once & once(verdict) != 0 {
            return Ok(self.stop(NotResent::OnceOnly));
        }
        self.once |= once(verdict);
        if ended.throttled {
            return Ok(self.stop(NotResent::Throttled));
        }
        let wait = match verdict.hint() {
            Some(hint) if hint > policy.settings.max_hint => {
                return Ok(self.stop(NotResent::HintTooLong));
            }
            Some(hint) => hint,
            None => Duration::ZERO,
        };
        let needed = wait.saturating_add(policy.settings.min_attempt_time);
        if ended.remaining.is_some_and(|remaining| needed > remaining) {
            return Ok(self.stop(NotResent::DeadlineTooClose));
        }
        Ok(match wait {
            // The key is in use by an attempt that still runs: another at once would only hear the same.
            Duration::ZERO if verdict.resend() == Resend::IfKeyed => When::AtDelay,
            Duration::ZERO => When::Now,
            wait => When::After(wait),
        })
    }

    const fn stop(&mut self, reason: NotResent) -> When {
        self.halt(reason);
        When::Never
    }
}

/// Says whether an operation is hedged, before its first attempt, given what is said of its method: an error is why not.
pub(super) fn hedged(
    policy: &HedgePolicy,
    method: Option<&MethodConfig>,
    safety: Safety,
    inside_owner: bool,
) -> Result<(), NotResent> {
    if inside_owner && policy.settings.nested == Nested::Inherit {
        return Err(NotResent::OwnedOutside);
    }
    match method.and_then(MethodConfig::resends) {
        Some(Resends::Hedge(_)) => Ok(()),
        // Retried or hedged, never both.
        Some(Resends::Retry(_) | Resends::Never) => Err(NotResent::AttemptsExhausted),
        None if policy.max_attempts() == 1 => Err(NotResent::AttemptsExhausted),
        None if policy.settings.idempotent_only && !safety.is_idempotent() => {
            Err(NotResent::NotIdempotent)
        }
        None => Ok(()),
    }
}

/// The plan by which a method is hedged, if it has one.
pub(super) fn plan(method: Option<&MethodConfig>) -> Option<&HedgePlan> {
    match method?.resends()? {
        Resends::Hedge(plan) => Some(plan),
        _ => None,
    }
}

const fn allows(policy: &HedgePolicy, safety: Safety, verdict: Verdict) -> bool {
    let told = !policy.settings.idempotent_only && matches!(verdict.resend(), Resend::IfIdempotent);
    told || safety.allows_after(verdict)
}

#[cfg(test)]
mod tests {
    use mamparo_core::Kind;
    use proptest::prelude::*;

    use super::*;

    fn verdicts() -> impl Strategy<Value = Verdict> {
        let failure = |resend| Verdict::failure(Kind::Unavailable, resend);
        prop::sample::select(vec![
            Verdict::SUCCESS,
            Verdict::IGNORED,
            failure(Resend::IfIdempotent),
            failure(Resend::Always),
            failure(Resend::Never),
            failure(Resend::IfKeyed),
            failure(Resend::IfIdempotent).once(),
            failure(Resend::IfIdempotent).forbidden(),
            failure(Resend::IfIdempotent).after(Duration::from_secs(1)),
            failure(Resend::IfIdempotent).after(Duration::from_secs(100)),
        ])
    }

    proptest! {
        /// P-D5: never more attempts than allowed, none after a stop, and an end as soon as nothing runs or follows.
        #[test]
        fn a_course_keeps_its_bounds_and_comes_to_an_end(
            most in 1u32..6,
            turns in prop::collection::vec((verdicts(), any::<bool>()), 0..40),
            keyed in any::<bool>(),
        ) {
            let policy = HedgePolicy::builder().max_attempts(most).build().unwrap();
            let safety = Safety::IDEMPOTENT.with_key(keyed);
            let mut course = Course::begun(most, None);
            let mut stopped = false;
            for (verdict, begins) in turns {
                if begins && course.may_go_on() {
                    prop_assert!(!stopped, "an attempt after the hedging had stopped");
                    course.begin();
                }
                prop_assert!(course.running <= course.begun && course.begun <= most);
                if course.running == 0 {
                    prop_assert!(course.may_go_on(), "nothing runs, nothing follows, and no end was told");
                    continue;
                }
                let ended = Ended { verdict, safety, remaining: None, throttled: false };
                match course.ended(&policy, ended) {
                    Step::Settled(reason) => {
                        prop_assert_eq!(reason.is_none(), verdict == Verdict::SUCCESS);
                        break;
                    }
                    Step::Last(_) => {
                        prop_assert!(course.running == 0 && !course.may_go_on());
                        break;
                    }
                    Step::Next(When::Never) => {
                        prop_assert!(course.running > 0 && !course.may_go_on());
                        stopped = true;
                    }
                    Step::Next(_) => prop_assert!(course.may_go_on()),
                }
            }
        }
    }
}
