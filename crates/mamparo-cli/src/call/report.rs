//! What stderr says of a call: the waterfall, and one line of outcome.

use mamparo::fallback::Failed;
use mamparo_core::{Dependency, Kind, Reason};

use super::about::Answered;
use super::ending::{Came, Ended};
use crate::exit::Exit;
use crate::output;
use crate::trace::{Kept, draw, millis, rows, since};

/// Says what happened.
pub(super) fn report<A: Answered>(
    kept: &Kept,
    dependency: Dependency,
    came: &Came<A>,
    ended: &Ended,
) {
    for root in kept.roots() {
        for line in draw(&rows(kept, root), output::width()) {
            output::note(&line);
        }
    }
    match (&ended.error, came) {
        (Some(error), _) => output::error(error),
        (None, Ok(answer)) => output::note(&outcome(kept, dependency, answer, ended)),
        (None, Err(_)) => {}
    }
}

fn outcome(kept: &Kept, dependency: Dependency, answer: &impl Answered, ended: &Ended) -> String {
    let attempts = ended.attempts;
    let plural = if attempts == 1 { "" } else { "s" };
    let from = match answer.instead_of() {
        Some(_) => "from the fallback of",
        None => "from",
    };
    let mut line = format!(
        "{} {from} {dependency} after {attempts} attempt{plural}",
        answer.status()
    );
    if let Some(root) = kept.roots().first() {
        line += &format!(" in {}", millis(since(root.start_time, root.end_time)));
    }
    if let Some(says) = answer.says() {
        line += &format!("; it says: {says}");
    }
    if let Some(failed) = answer.instead_of() {
        line += &format!("; instead of: {}", why(failed).replace('_', " "));
    }
    let not_resent = ended.ending.and_then(|ending| ending.not_resent());
    if let Some(reason) = not_resent {
        line += &format!("; not sent again: {}", reason.as_str().replace('_', " "));
    } else if attempts > 1 && answer.instead_of().is_none() {
        let hedged = kept
            .roots()
            .first()
            .is_some_and(|root| kept.is_hedged(root));
        line += if hedged { "; hedged" } else { "; recovered" };
    }
    if ended.exit == Exit::Indeterminate {
        line += "; it may have taken effect: look before you send it again";
    }
    line
}

/// How an operation failed that a fallback stands in for.
pub(super) fn why(failed: Failed) -> &'static str {
    let reason = failed.reason().map(Reason::as_str);
    reason
        .or(failed.kind().map(Kind::as_str))
        .unwrap_or("failed")
}
