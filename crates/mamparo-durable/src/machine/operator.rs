//! What people do to a transaction.

use super::decide::Case;
use super::{Cause, Decision, End, Guard, Label, Note, Progress, State, Utc};

/// Resolved otherwise. Not while its request is just leaving: there its answer decides.
pub(super) fn resolve(case: &Case<'_>, reason: Option<&Label>) -> Decision {
    match case.progress.state {
        State::InFlight | State::Scheduling | State::Scheduled => {
            case.end(End::Resolved, Cause::Resolved, reason)
        }
        State::Sending => Decision::nothing(Note::NotAllowed),
        State::Succeeded => Decision::nothing(Note::Already),
        State::Failed => Decision::nothing(Note::Finished),
    }
}

/// Called off, where it is certain that the dependency has not acted.
pub(super) fn cancel(case: &Case<'_>, reason: Option<&Label>) -> Decision {
    let may_have_acted =
        case.progress.is_technical_wait() && case.context.holds(Guard::NoCancelInTechnicalWait);
    match (case.progress.state, case.progress.end) {
        (State::Scheduling | State::Scheduled, _) if !may_have_acted => {
            case.end(End::Cancelled, Cause::Cancelled, reason)
        }
        (_, Some(End::Cancelled)) => Decision::nothing(Note::Already),
        (_, Some(_)) => Decision::nothing(Note::Finished),
        _ => Decision::nothing(Note::NotAllowed),
    }
}

/// Another instant for the attempt that waits. An operator's move counts as no postponement.
pub(super) fn relocate(case: &Case<'_>, to: Utc, cause: Cause, reason: Option<&Label>) -> Decision {
    if !case.progress.state.is_waiting() {
        let terminal = case.progress.state.is_terminal();
        let note = if terminal {
            Note::Finished
        } else {
            Note::NotAllowed
        };
        return Decision::nothing(note);
    }
    let moved = Progress {
        schedule_seq: case.progress.schedule_seq.saturating_add(1),
        next_fire_at: Some(to),
        ..case.progress.clone()
    };
    case.schedule(moved, cause, reason)
}
