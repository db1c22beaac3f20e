//! How the call ended: its exit code, and the one line that says why it failed.

use std::error::Error;

use mamparo::fallback::Failed;
use mamparo_core::chain::chain;
use mamparo_core::{
    BoxError, Dependency, Ending, Kind, Reason, Rejection, Resend, RetryError, TransportError,
};

use super::about::{About, Answered};
use crate::exit::Exit;
use crate::trace::millis;

/// Why a layer refuses to send what could have been sent.
const REFUSALS: [Reason; 5] = [
    Reason::BreakerOpen,
    Reason::BulkheadFull,
    Reason::RateLimited,
    Reason::AboveBurst,
    Reason::Overloaded,
];

/// What came back.
pub(super) type Came<A> = Result<A, BoxError>;

/// How a call ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) exit: Exit,
    /// How many attempts were made.
    pub(super) attempts: u32,
    pub(super) ending: Option<Ending>,
    /// Why it failed, where there is no whole answer.
    pub(super) error: Option<String>,
}

/// Judges what came back. `seen` is how many attempts were seen.
pub(super) fn judge<A: Answered>(came: &Came<A>, about: &About, seen: u32) -> Ended {
    let ending = match came {
        Ok(answer) => answer.ending(),
        Err(error) => RetryError::of(&**error).map(RetryError::ending),
    };
    let attempts = ending.map_or(seen, |ending| ending.attempts());
    let exit = match came {
        _ if ending.is_some_and(|ending| ending.is_indeterminate()) => Exit::Indeterminate,
        Ok(answer) if !about.safe && hides_unknown(answer) => Exit::Indeterminate,
        Ok(answer) => answer.exit(),
        // Cut before a retry could judge it.
        Err(error) if !about.safe && was_cut(error) => Exit::Indeterminate,
        Err(error) => of_error(&**error),
    };
    let error = match came {
        Ok(answer) => answer.error(about.dependency, attempts),
        Err(error) => Some(why(error, about.dependency, attempts)),
    };
    Ended {
        exit,
        attempts,
        ending,
        error,
    }
}

/// Returns how the command ends with an error of the stack, or of a body.
pub(super) fn of_error(error: &(dyn Error + 'static)) -> Exit {
    let transport = TransportError::of(error).and_then(|error| error.verdict().kind());
    let reason = Rejection::of(error).map(Rejection::reason);
    let slow = matches!(
        reason,
        Some(Reason::DeadlineExceeded | Reason::AttemptTimedOut | Reason::BodyIdle)
    );
    if slow || transport == Some(Kind::Timeout) {
        Exit::OutOfTime
    } else if reason.is_some_and(|reason| REFUSALS.contains(&reason)) {
        Exit::Rejected
    } else {
        Exit::NoAnswer
    }
}

/// Tells whether a fallback stands in for an operation of which nobody knows whether it took effect.
fn hides_unknown(answer: &impl Answered) -> bool {
    let unknown = |failed: Failed| failed.verdict().resend() == Resend::IfIdempotent;
    answer.instead_of().is_some_and(unknown)
}

fn was_cut(error: &BoxError) -> bool {
    RetryError::of(&**error).is_none() && Rejection::of(&**error).is_some_and(Rejection::sent)
}

fn why(error: &BoxError, dependency: Dependency, attempts: u32) -> String {
    let causes = causes(&**error, dependency);
    if own(&**error)
        .next()
        .is_some_and(|error| error.is::<RetryError>())
    {
        return format!("{dependency}: {causes}");
    }
    let plural = if attempts == 1 { "" } else { "s" };
    format!("{dependency}: failed after {attempts} attempt{plural}: {causes}")
}

/// Says an error and its causes, each once, without the dependency's name before it.
pub(super) fn causes(error: &(dyn Error + 'static), dependency: Dependency) -> String {
    let name = format!("{dependency}: ");
    let mut said: Vec<String> = Vec::new();
    for cause in own(error) {
        let cause = one_line(cause.to_string().trim_start_matches(&name));
        if !said.iter().any(|before| before.contains(&cause)) {
            said.push(cause);
        }
    }
    let mut said = said.join(": ");
    let rejection = Rejection::of(error);
    if let Some(wait) = rejection.and_then(Rejection::retry_after) {
        said += &format!("; try again in {}", millis(wait));
    }
    said
}

/// An error and its causes. A status of tonic's among them is made of what stands around it, and says nothing new.
fn own<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    chain(error).filter(|cause| !cause.is::<tonic::Status>())
}

/// Puts a text on one line, without what a terminal would take for an order.
pub(super) fn one_line(text: &str) -> String {
    let text = text.replace(|c: char| c.is_control(), " ");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
