//! Handler B: what a fire means.

use super::decide::{Case, alert};
use super::{Cause, Decision, Effect, End, Fire, Gate, Guard, Input, Note, Progress, State, Utc};

pub(super) fn decide(case: &Case<'_>, fire: Fire) -> Decision {
    let progress = case.progress;
    if is_given_up(case, fire) {
        return case.end(End::OutcomeUnknown, Cause::GivenUp, None);
    }
    let same_seq = fire.seq == progress.schedule_seq || !case.context.holds(Guard::FireNeedsSeq);
    if progress.attempt_next != Some(fire.attempt) || !same_seq {
        return obsolete(case, fire);
    }
    match (progress.state, fire.gate) {
        (State::Scheduling, _) if !case.context.holds(Guard::FireCountsInScheduling) => {
            Decision::nothing(Note::Obsolete)
        }
        (State::Scheduling | State::Scheduled, Gate::Postpone { until }) => postpone(case, until),
        (State::Scheduling | State::Scheduled, Gate::Pass) => claim(case, fire),
        (State::Sending, Gate::Postpone { until })
            if !case.context.holds(Guard::PostponeBeforeClaim) =>
        {
            postpone(case, until)
        }
        // Whoever claimed it may have died before it was sent. Sent twice, the dependency drops one by its key.
        (State::Sending, _) if case.context.holds(Guard::FireResumesSending) => {
            send(Decision::nothing(Note::Resumed), fire)
        }
        _ => Decision::nothing(Note::Already),
    }
}

/// The reconciler has fired it, since the answer did not come until the last instant.
fn is_given_up(case: &Case<'_>, fire: Fire) -> bool {
    fire.seq == Fire::GIVES_UP
        && case.progress.state == State::InFlight
        && fire.attempt == case.progress.attempt_current
        && case.context.now >= case.terms.give_up_at
}

/// The attempt moves in this write: from here on an answer to it counts, however fast it is.
fn claim(case: &Case<'_>, fire: Fire) -> Decision {
    let mut to = Progress {
        state: State::Sending,
        next_fire_at: None,
        ..case.progress.clone()
    };
    if case.context.holds(Guard::AdvanceOnClaim) {
        to.attempt_current = fire.attempt;
    }
    send(Decision::write(case.write(to, Cause::Claimed, None)), fire)
}

fn send(decision: Decision, Fire { attempt, seq, .. }: Fire) -> Decision {
    decision
        .effect(Effect::Send { attempt, seq })
        .then(Input::Published { attempt, seq })
}

/// The request has left. That the state is already further on means that its answer was faster.
pub(super) fn published(case: &Case<'_>, attempt: u32, seq: u32) -> Decision {
    let progress = case.progress;
    let current = progress.attempt_next == Some(attempt) && progress.schedule_seq == seq;
    if progress.state != State::Sending || !current {
        return Decision::nothing(Note::Already);
    }
    let to = Progress {
        state: State::InFlight,
        attempt_current: attempt,
        attempt_next: None,
        ..progress.clone()
    };
    Decision::write(case.write(to, Cause::Published, None))
}

/// A breaker's postponement of what waits, with or without its fire.
pub(super) fn postpone_waiting(case: &Case<'_>, until: Option<Utc>) -> Decision {
    match case.progress.state {
        State::Scheduling | State::Scheduled => postpone(case, until),
        State::Succeeded | State::Failed => Decision::nothing(Note::Finished),
        _ => Decision::nothing(Note::NotAllowed),
    }
}

fn postpone(case: &Case<'_>, until: Option<Utc>) -> Decision {
    let progress = case.progress;
    if case.is_given_up() {
        let unknown = progress.is_technical_wait();
        let end = if unknown {
            End::OutcomeUnknown
        } else {
            End::PostponedTooLong
        };
        return case.end(end, Cause::Postponed, None);
    }
    let policy = case.context.policy;
    let seq = progress.schedule_seq.saturating_add(1);
    let fire_at = case.after(policy.postponed(), seq, 1.0);
    let to = Progress {
        schedule_seq: seq,
        postponements: progress.postponements.saturating_add(1),
        next_fire_at: Some(policy.honour(until, fire_at, case.context.now, case.context.draw)),
        ..progress.clone()
    };
    case.schedule(to, Cause::Postponed, None)
}

fn obsolete(case: &Case<'_>, fire: Fire) -> Decision {
    let progress = case.progress;
    let moved = progress.state == State::Scheduling
        && progress.attempt_next == Some(fire.attempt)
        && fire.seq < progress.schedule_seq;
    if moved && case.context.holds(Guard::ObsoleteFireEnsures) {
        // Whoever moved it may have died before it made the new schedule.
        return case.resume().noted(Note::Obsolete);
    }
    let again = match progress.end {
        Some(end @ (End::PostponedTooLong | End::OutcomeUnknown))
            if case.context.holds(Guard::EndsAreToldAgain) =>
        {
            alert(end)
        }
        _ => None,
    };
    let note = if progress.state.is_terminal() {
        Note::Finished
    } else {
        Note::Obsolete
    };
    Decision::nothing(note).effects(again)
}
