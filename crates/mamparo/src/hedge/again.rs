//! What gRPC asks of hedges besides: an attempt that was never processed goes once more, and failures are throttled.

use mamparo_core::{Answer, BoxError, Class, Classify, Verdict, What, clock};
use tower_service::Service;

use super::arm::{Arm, Run, Spent};
use super::operation::Operation;
use crate::replay::Replay;
use crate::resend::was_never_processed;

impl<S, P, Req> Operation<S, P, Req>
where
    P: Replay<Req> + Classify<S::Response> + Answer<S::Response>,
    S: Service<P::Wire> + Clone,
    S::Error: Into<BoxError>,
{
    /// Sends an attempt once more at once that was never processed; an error, with what was paid for it, is that it has ended.
    pub(super) fn once_more(
        &mut self,
        run: Run,
        spent: Option<Spent>,
        verdict: Verdict,
    ) -> Result<(), Option<Spent>> {
        let Some(reason) = verdict.kind().filter(|_| self.is_transparent(verdict)) else {
            return Err(spent);
        };
        let Some(wire) = self.again(run.number) else {
            return Err(spent);
        };
        self.report(What::SentTransparently { reason });
        let (service, now) = (self.made.another(), clock::now());
        let arm = Arm::again(service, run.number, (wire, spent), now);
        let race = self.race();
        race.transparent = true;
        race.later.push(Box::pin(arm));
        Ok(())
    }

    fn is_transparent(&self, verdict: Verdict) -> bool {
        let least = self.made.shared.policy.settings.min_attempt_time;
        was_never_processed(verdict)
            && self.may_be_once_more()
            && self.held.is_some()
            && (self.scene.scope)
                .attempt_remaining(clock::now())
                .is_none_or(|remaining| least <= remaining)
    }

    /// Whether an attempt that was never processed may yet be sent once more: one of an operation is.
    pub(super) fn may_be_once_more(&self) -> bool {
        self.made.shared.protocol.is_transparent()
            && !self.race.as_deref().is_some_and(|race| race.transparent)
    }

    fn again(&mut self, number: u32) -> Option<P::Wire> {
        let held = self.held.take()?;
        let protocol = &self.made.shared.protocol;
        let more = self.course.may_go_on();
        let made = if self.course.running > 1 {
            protocol.beside(held, more)
        } else {
            protocol.again(held, more)
        };
        let (mut wire, held) = made.ok()?;
        if number > 1 {
            protocol.number(&mut wire, number);
        }
        self.held = held;
        Some(wire)
    }

    /// Tells the throttle of an attempt's end, and asks it whether there may be more.
    pub(super) fn throttled(&self, verdict: Verdict) -> bool {
        let Some(throttle) = self.made.shared.throttle() else {
            return false;
        };
        let counts = verdict.is_forbidden() || self.safety.allows_after(verdict);
        if counts && verdict.kind().is_some() {
            throttle.failed();
        }
        !throttle.allows()
    }

    /// Tells the throttle of the operation's end.
    #[inline]
    pub(super) fn pay_in(&self, verdict: Verdict) {
        if verdict.class() == Class::Success
            && let Some(throttle) = self.made.shared.throttle()
        {
            throttle.succeeded();
        }
    }
}
