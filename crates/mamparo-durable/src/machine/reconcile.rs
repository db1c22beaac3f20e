//! What the reconciler does with a transaction that sits where it should not.

use super::decide::Case;
use super::{
    AlertKind, Cause, Decision, Effect, Fire, Guard, Note, Patience, Progress, State, Utc,
};

pub(super) fn decide(case: &Case<'_>, patience: Patience) -> Decision {
    let progress = case.progress;
    let since_write = case.context.now.since(progress.updated_at);
    match progress.state {
        State::Scheduling if since_write >= patience.scheduling => case.resume(),
        State::Scheduled if overdue(case, progress.next_fire_at, patience) => refire(case),
        State::Sending if since_write >= patience.sending => refire(case),
        State::InFlight if since_write >= patience.in_flight => answer_lost(case),
        State::Succeeded | State::Failed => Decision::nothing(Note::Finished),
        _ => Decision::nothing(Note::NotStuck),
    }
}

/// Long past its instant, and not fired again just now: its fire may be waiting in the queue.
fn overdue(case: &Case<'_>, fire_at: Option<Utc>, patience: Patience) -> bool {
    let now = case.context.now;
    let due = fire_at.is_some_and(|fire_at| now >= fire_at.plus(patience.scheduled))
        && now.since(case.progress.updated_at) >= patience.scheduled;
    due || !case.context.holds(Guard::ReconcilerWaits)
}

/// Through the same handler as every fire.
fn refire(case: &Case<'_>) -> Decision {
    let attempt = case
        .progress
        .attempt_next
        .unwrap_or(case.progress.attempt_current);
    let seq = case.progress.schedule_seq;
    touched(case, Cause::Refired).effect(Effect::Refire { attempt, seq })
}

/// The same key: if the dependency did it, it says so again.
fn answer_lost(case: &Case<'_>) -> Decision {
    let given_up = case.context.now >= case.terms.give_up_at;
    let attempt = case.progress.attempt_current;
    if given_up && case.context.holds(Guard::ReconcilerGivesUp) {
        // A message ends it: it is delivered again, and tells again, if whoever handles it dies. No message has us look.
        let seq = Fire::GIVES_UP;
        return touched(case, Cause::Refired).effect(Effect::Refire { attempt, seq });
    }
    if !case.context.holds(Guard::ReconcilerResends) {
        return Decision::nothing(Note::NotStuck);
    }
    let seq = case.progress.schedule_seq;
    touched(case, Cause::Resent)
        .effect(Effect::Send { attempt, seq })
        .effect(Effect::Alert(AlertKind::AnswerLost))
}

/// Writes when it was looked after, so that neither the next cycle nor another replica does it again at once.
fn touched(case: &Case<'_>, cause: Cause) -> Decision {
    let same: Progress = case.progress.clone();
    Decision::write(case.write(same, cause, None))
}
