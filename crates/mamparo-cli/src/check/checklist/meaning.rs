//! What sending again means to a dependency.

use super::facts::{Answer, Facts, answered, missing, open};

const ONCE: &str = "nothing is sent again";

pub(super) fn may_be_repeated(facts: &Facts<'_>) -> Answer {
    if !facts.sends_again() {
        return answered(ONCE);
    }
    if facts.repeats_blindly() {
        return missing(
            "no, and it is sent again: write idempotency_key, or let retry.methods name no POST or PATCH",
        );
    }
    if facts.is_grpc() {
        return answered(
            "what was never processed, or is UNAVAILABLE before its answer began, is sent again; nothing else",
        );
    }
    if let Some(methods) = facts.written("retry.methods") {
        return answered(format!(
            "{methods} are said to be safe, and no others without a key"
        ));
    }
    if let Some(header) = facts.key() {
        return answered(format!(
            "a request that is not idempotent by its method has a key, in {header}, the same on all attempts"
        ));
    }
    open(
        "GET, HEAD, OPTIONS, TRACE, QUERY, PUT and DELETE are sent again: does each PUT and DELETE take \
         effect once? If not, name the others as retry.methods",
    )
}

pub(super) fn tells_a_repetition(facts: &Facts<'_>) -> Answer {
    if !facts.sends_again() {
        return answered(ONCE);
    }
    if facts.repeats_blindly() {
        return missing("it gets no keys, and what is not idempotent is sent again");
    }
    let forgets = |retention: &str| {
        let kept = humantime::parse_duration(retention).ok();
        kept.zip(facts.plan.deadline())
            .is_some_and(|(kept, deadline)| kept <= deadline)
    };
    match (facts.key(), facts.some("idempotency_key.retention")) {
        (Some(_), Some(retention)) if forgets(retention) => missing(format!(
            "it forgets a key after {retention}, and may get it again after that: a longer idempotency_key.retention, or a shorter deadline"
        )),
        (None, _) => answered("it gets no keys, and what is not idempotent is sent once"),
        (Some(_), Some(retention)) => answered(format!(
            "it remembers a key for {retention}, which is longer than it is sent again"
        )),
        (Some(_), None) => open(
            "it gets keys: for how long does it remember them, and does it refuse one with another content? Write \
             idempotency_key.retention",
        ),
    }
}

pub(super) fn are_transient(facts: &Facts<'_>) -> Answer {
    if !facts.sends_again() {
        return answered(format!("none is taken to be: {ONCE}"));
    }
    if facts.is_grpc() {
        return answered("UNAVAILABLE before an answer began, and a call that was never processed");
    }
    let never = facts.written("retry.never_retry").unwrap_or_default();
    let usual = ["408", "425", "429", "500", "502", "503", "504"];
    let usual = usual.into_iter().filter(|status| !never.contains(status));
    let also = facts.written("retry.also_retry").unwrap_or_default();
    let also = also.trim_matches(['[', ']']);
    let also = if also.is_empty() {
        String::new()
    } else {
        format!(", and {also}")
    };
    let usual = usual.collect::<Vec<_>>().join(", ");
    answered(format!(
        "no connection, a reset, an attempt that timed out, {usual}{also}; 425 and 500 once"
    ))
}

pub(super) fn are_final(facts: &Facts<'_>) -> Answer {
    if facts.is_grpc() {
        return answered("every other code; a service config can say so for each method");
    }
    match facts.written("retry.never_retry").filter(|it| *it != "[]") {
        Some(never) => answered(format!(
            "every other 4xx and 5xx; {never} by retry.never_retry"
        )),
        None => answered("every other 4xx and 5xx"),
    }
}

pub(super) fn is_the_breaker_asked_again(facts: &Facts<'_>) -> Answer {
    match facts.setting("breaker") {
        Some("off") => answered("there is no breaker"),
        _ => answered("never: its rejection ends the operation, and says when to come back"),
    }
}

pub(super) fn is_a_lost_answer_foreseen(facts: &Facts<'_>) -> Answer {
    if !facts.sends_again() {
        return answered("its caller is told of the failure, and decides");
    }
    match facts.key() {
        Some(_) => answered("the resend has the first attempt's key"),
        None => answered(
            "an idempotent request is sent again, and any other is marked as indeterminate",
        ),
    }
}
