//! The decision, and what the decisions of all inputs share.

use super::{
    AlertKind, AuditEvent, Cause, Context, Decision, Effect, End, Input, Label, Note, Progress,
    Schedule, State, Terms, Utc, Write, answer, fire, operator, reconcile,
};
use crate::policy::Wait;

/// Decides what an input means to a transaction and what is to be done, from nothing but its arguments.
pub fn decide(
    terms: &Terms,
    progress: &Progress,
    input: &Input,
    context: &Context<'_>,
) -> Decision {
    let case = Case {
        terms,
        progress,
        context,
    };
    if !progress.is_sound() {
        return Decision::nothing(Note::Corrupt).effect(Effect::Alert(AlertKind::CorruptRecord));
    }
    match input {
        Input::Answer(answer) => answer::decide(&case, answer),
        Input::Fire(fire) => fire::decide(&case, *fire),
        Input::Confirmed { attempt, seq } => case.confirmed(*attempt, *seq),
        Input::Published { attempt, seq } => fire::published(&case, *attempt, *seq),
        Input::Resolve { reason } => operator::resolve(&case, reason.as_ref()),
        Input::Cancel { reason } => operator::cancel(&case, reason.as_ref()),
        Input::Move { to, reason } => operator::relocate(&case, *to, Cause::Moved, reason.as_ref()),
        Input::FireNow { reason } => {
            operator::relocate(&case, context.now, Cause::FiredNow, reason.as_ref())
        }
        Input::Postpone { until } => fire::postpone_waiting(&case, *until),
        Input::Reconcile(patience) => reconcile::decide(&case, *patience),
    }
}

/// A transaction, and what a decision about it depends on.
#[derive(Clone, Copy)]
pub(super) struct Case<'a> {
    pub(super) terms: &'a Terms,
    pub(super) progress: &'a Progress,
    pub(super) context: &'a Context<'a>,
}

impl Case<'_> {
    /// A write from what is stored to `to`, with its row of history.
    pub(super) fn write(&self, mut to: Progress, cause: Cause, reason: Option<&Label>) -> Write {
        to.updated_at = self.context.now;
        if reason.is_some() {
            to.reason = reason.cloned();
        }
        let event = AuditEvent {
            at: self.context.now,
            from: Some(self.progress.state),
            to: to.state,
            attempt: to.attempt_next.unwrap_or(to.attempt_current),
            seq: to.schedule_seq,
            fire_at: to.next_fire_at,
            cause,
            reason: reason.cloned(),
        };
        Write::new(self.progress.expect(), to, event)
    }

    /// The end, which clears what waits.
    pub(super) fn end(&self, end: End, cause: Cause, reason: Option<&Label>) -> Decision {
        let to = Progress {
            state: end.state(),
            attempt_next: None,
            next_fire_at: None,
            end: Some(end),
            ..self.progress.clone()
        };
        Decision::write(self.write(to, cause, reason))
            .effects(alert(end))
            .effects(self.unschedule())
    }

    /// Stores another attempt, or another instant of the same one, then makes its schedule and confirms it.
    pub(super) fn schedule(&self, to: Progress, cause: Cause, reason: Option<&Label>) -> Decision {
        let to = Progress {
            state: State::Scheduling,
            ..to
        };
        let write = self.write(to, cause, reason);
        let (create, then) = scheduling(&write.to, None);
        let decision = Decision::write(write).then(then);
        if self.context.holds(super::Guard::CreateBeforeDelete) {
            decision.effects(create).effects(self.unschedule())
        } else {
            decision.effects(self.unschedule()).effects(create)
        }
    }

    /// Makes the schedule that is stored, with its stored instant, and confirms it.
    pub(super) fn resume(&self) -> Decision {
        let recomputed = (!self.context.holds(super::Guard::StoredInstant))
            .then(|| self.after(self.context.policy.business(), 1, 1.0));
        let (create, then) = scheduling(self.progress, recomputed);
        Decision::nothing(Note::Resumed).effects(create).then(then)
    }

    /// The instant after a wait, jitter included.
    pub(super) fn after(&self, wait: &Wait, k: u32, factor: f64) -> Utc {
        self.context
            .now
            .plus(wait.after(k, self.context.draw, factor))
    }

    /// Tells whether what is technical has gone on for too long.
    pub(super) fn is_given_up(&self) -> bool {
        let capped = self.context.holds(super::Guard::PostponementsAreCapped);
        let spent = capped && self.progress.postponements >= self.terms.max_postponements;
        spent || self.context.now >= self.terms.give_up_at
    }

    fn confirmed(&self, attempt: u32, seq: u32) -> Decision {
        let progress = self.progress;
        let current = progress.attempt_next == Some(attempt) && progress.schedule_seq == seq;
        if progress.state != State::Scheduling || !current {
            return Decision::nothing(Note::Already);
        }
        let to = Progress {
            state: State::Scheduled,
            ..progress.clone()
        };
        Decision::write(self.write(to, Cause::Confirmed, None))
    }

    fn unschedule(&self) -> Option<Effect> {
        let attempt = self
            .progress
            .attempt_next
            .filter(|_| self.progress.state.is_waiting())?;
        let seq = self.progress.schedule_seq;
        Some(Effect::Unschedule { attempt, seq })
    }
}

/// The schedule that `waiting` is in need of, and what is to be decided once it exists.
fn scheduling(waiting: &Progress, recomputed: Option<Utc>) -> (Option<Effect>, Input) {
    let attempt = waiting.attempt_next.unwrap_or(waiting.attempt_current);
    let seq = waiting.schedule_seq;
    let create = recomputed.or(waiting.next_fire_at).map(|fire_at| {
        Effect::Schedule(Schedule {
            attempt,
            seq,
            fire_at,
        })
    });
    (create, Input::Confirmed { attempt, seq })
}

/// The alert that an end is worth.
pub(super) fn alert(end: End) -> Option<Effect> {
    let quiet = matches!(end, End::Answered | End::Resolved | End::Cancelled);
    (!quiet).then_some(Effect::Alert(AlertKind::Failed(end)))
}
