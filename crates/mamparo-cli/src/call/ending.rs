//! How the call ended: its exit code, and the one line that says why it failed.

use mamparo::fallback::Failed;
use mamparo_core::chain::chain;
use mamparo_core::{
    BoxError, Dependency, Ending, Kind, Reason, Rejection, Resend, RetryError, TransportError,
};

use super::deliver::{Answer, End};
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
pub(super) type Came = Result<Answer, BoxError>;

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

/// Judges what came back. `seen` is how many attempts were seen; `safe` whether the request may take effect twice.
pub(super) fn judge(came: &Came, dependency: Dependency, seen: u32, safe: bool) -> Ended {
    let ending = match came {
        Ok(answer) => answer.ending,
        Err(error) => RetryError::of(&**error).map(RetryError::ending),
    };
    let attempts = ending.map_or(seen, |ending| ending.attempts());
    let exit = match came {
        _ if ending.is_some_and(|ending| ending.is_indeterminate()) => Exit::Indeterminate,
        Ok(answer) if !safe && hides_unknown(answer) => Exit::Indeterminate,
        Ok(answer) => of_answer(answer),
        // Cut before a retry could judge it.
        Err(error) if !safe && was_cut(error) => Exit::Indeterminate,
        Err(error) => of_error(error),
    };
    Ended {
        exit,
        attempts,
        ending,
        error: why(came, dependency, attempts),
    }
}

fn of_answer(answer: &Answer) -> Exit {
    let failed = answer.status.is_client_error() || answer.status.is_server_error();
    match &answer.body {
        End::Unwritten(_) => Exit::Unwritten,
        End::Broken(error) => of_error(error),
        End::Whole if failed => Exit::FailedAnswer,
        End::Whole => Exit::Success,
    }
}

fn of_error(error: &BoxError) -> Exit {
    let transport = TransportError::of(&**error).and_then(|error| error.verdict().kind());
    let reason = Rejection::of(&**error).map(Rejection::reason);
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
fn hides_unknown(answer: &Answer) -> bool {
    let unknown = |failed: Failed| failed.verdict().resend() == Resend::IfIdempotent;
    answer.instead_of.is_some_and(unknown)
}

fn was_cut(error: &BoxError) -> bool {
    RetryError::of(&**error).is_none() && Rejection::of(&**error).is_some_and(Rejection::sent)
}

fn why(came: &Came, dependency: Dependency, attempts: u32) -> Option<String> {
    Some(match came {
        Ok(Answer {
            body: End::Whole, ..
        }) => return None,
        Ok(Answer {
            body: End::Unwritten(error),
            ..
        }) => {
            format!("the answer could not be written to stdout: {error}")
        }
        Ok(Answer {
            body: End::Broken(error),
            length,
            ..
        }) => {
            let causes = causes(error, dependency);
            format!(
                "{dependency}: answer of attempt {attempts} broke off after {length} bytes: {causes}"
            )
        }
        Err(error) if error.is::<RetryError>() => causes_whole(error, dependency),
        Err(error) => {
            let causes = causes(error, dependency);
            let plural = if attempts == 1 { "" } else { "s" };
            format!("{dependency}: failed after {attempts} attempt{plural}: {causes}")
        }
    })
}

fn causes_whole(error: &BoxError, dependency: Dependency) -> String {
    format!("{dependency}: {}", causes(error, dependency))
}

/// An error and its causes, each said once, without the dependency's name before it.
fn causes(error: &BoxError, dependency: Dependency) -> String {
    let name = format!("{dependency}: ");
    let mut said: Vec<String> = Vec::new();
    for cause in chain(&**error) {
        let cause = one_line(cause.to_string().trim_start_matches(&name));
        if !said.iter().any(|before| before.contains(&cause)) {
            said.push(cause);
        }
    }
    let mut said = said.join(": ");
    let rejection = Rejection::of(&**error);
    if let Some(wait) = rejection.and_then(Rejection::retry_after) {
        said += &format!("; try again in {}", millis(wait));
    }
    said
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
