//! Handler A: what an answer means.

use super::decide::{Case, alert};
use super::{
    AlertKind, Answer, Cause, Decision, Effect, End, Guard, Label, Note, Outcome, Progress, State,
};

pub(super) fn decide(case: &Case<'_>, answer: &Answer) -> Decision {
    let late = answer.attempt != case.progress.attempt_current;
    if late && case.context.holds(Guard::LateAnswersAreDropped) {
        return Decision::nothing(Note::Late);
    }
    let reason = answer.reason.as_ref();
    match answer.outcome {
        Outcome::Success if awaits(case, Guard::SlowSuccessCounts) => {
            case.end(End::Answered, Cause::Succeeded, reason)
        }
        Outcome::Success => success_ignored(case),
        Outcome::Refused => refused(case, answer),
        Outcome::Declined => last_refusal(case, End::Declined, Cause::Declined, reason),
        Outcome::Technical => technical(case, answer),
    }
}

/// Whether the current attempt's answer is still to come; `slow` says whether one counts that was thought lost.
fn awaits(case: &Case<'_>, slow: Guard) -> bool {
    under_way(case) || (case.progress.is_technical_wait() && case.context.holds(slow))
}

fn under_way(case: &Case<'_>) -> bool {
    match case.progress.state {
        State::InFlight => true,
        // An answer proves that its request went out, whether or not that was written down yet.
        State::Sending => case.context.holds(Guard::AnswersCountInSending),
        _ => false,
    }
}

fn refused(case: &Case<'_>, answer: &Answer) -> Decision {
    let attempt = answer.attempt;
    let reason = answer.reason.as_ref();
    if attempt >= case.terms.max_attempts && case.context.holds(Guard::AttemptsAreCapped) {
        return last_refusal(case, End::Exhausted, Cause::Refused, reason);
    }
    if !awaits(case, Guard::SlowRefusalCounts) {
        return resume_or_acknowledge(case, answer.outcome);
    }
    let policy = case.context.policy;
    let wait = policy.business();
    let fire_at = case.after(wait, attempt, case.context.factor);
    let to = Progress {
        attempt_next: Some(attempt.saturating_add(1)),
        schedule_seq: 0,
        next_fire_at: Some(policy.honour(
            answer.not_before,
            fire_at,
            case.context.now,
            case.context.draw,
        )),
        ..case.progress.clone()
    };
    case.schedule(to, Cause::Refused, reason)
}

fn last_refusal(case: &Case<'_>, end: End, cause: Cause, reason: Option<&Label>) -> Decision {
    let named = case.context.holds(Guard::RefusalNamesItsStates);
    if named && !awaits(case, Guard::SlowRefusalCounts) {
        return resume_or_acknowledge(case, Outcome::Refused);
    }
    case.end(end, cause, reason)
}

fn technical(case: &Case<'_>, answer: &Answer) -> Decision {
    let progress = case.progress;
    let first =
        answer.seq == progress.schedule_seq || !case.context.holds(Guard::TechnicalNeedsSeq);
    if !under_way(case) || !first {
        return resume_or_acknowledge(case, answer.outcome);
    }
    let reason = answer.reason.as_ref();
    if case.is_given_up() {
        return case.end(End::OutcomeUnknown, Cause::TechnicalFailure, reason);
    }
    let policy = case.context.policy;
    let seq = progress.schedule_seq.saturating_add(1);
    let fire_at = case.after(policy.technical(), seq, 1.0);
    let spent = u32::from(!case.context.holds(Guard::TechnicalSpendsNoAttempt));
    let to = Progress {
        attempt_next: Some(answer.attempt + spent),
        schedule_seq: seq,
        postponements: progress.postponements.saturating_add(1),
        next_fire_at: Some(policy.honour(
            answer.not_before,
            fire_at,
            case.context.now,
            case.context.draw,
        )),
        ..progress.clone()
    };
    case.schedule(to, Cause::TechnicalFailure, reason)
}

/// A redelivery: whoever wrote SCHEDULING may have died before it made the schedule.
fn resume_or_acknowledge(case: &Case<'_>, outcome: Outcome) -> Decision {
    match case.progress.state {
        State::Scheduling if case.context.holds(Guard::AnswersResumeScheduling) => case.resume(),
        State::Succeeded | State::Failed => finished(case, outcome),
        _ => Decision::nothing(Note::Already),
    }
}

/// Whoever wrote the end may have died before it told anyone: the answer that led to it tells again.
fn finished(case: &Case<'_>, outcome: Outcome) -> Decision {
    let led_to_it = matches!(
        (outcome, case.progress.end),
        (Outcome::Refused, Some(End::Exhausted | End::Declined))
            | (Outcome::Technical, Some(End::OutcomeUnknown))
    );
    let tells = led_to_it && case.context.holds(Guard::EndsAreToldAgain);
    let again = case.progress.end.filter(|_| tells).and_then(alert);
    Decision::nothing(Note::Finished).effects(again)
}

fn success_ignored(case: &Case<'_>) -> Decision {
    match case.progress.state {
        State::Succeeded => Decision::nothing(Note::Finished),
        State::Failed => {
            Decision::nothing(Note::Finished).effect(Effect::Alert(AlertKind::SuccessIgnored))
        }
        _ => Decision::nothing(Note::Late).effect(Effect::Alert(AlertKind::SuccessIgnored)),
    }
}
