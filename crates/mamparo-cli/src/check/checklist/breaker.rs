//! What the breaker and the bulkhead do.

use super::facts::{Answer, Facts, answered, missing, open};

/// An answer, if there is a breaker.
fn of(facts: &Facts<'_>, answer: impl FnOnce() -> Answer) -> Answer {
    match facts.setting("breaker") {
        Some("off") => missing("there is no breaker"),
        _ => answer(),
    }
}

pub(super) fn what_does_it_observe(facts: &Facts<'_>) -> Answer {
    of(facts, || {
        answered(match facts.setting("breaker.observes") {
            Some("operations") => "operations: what comes of all attempts",
            _ => "attempts: what the dependency suffers counts at once",
        })
    })
}

pub(super) fn does_it_count_slow_calls(facts: &Facts<'_>) -> Answer {
    of(facts, || {
        let rate = match facts.some("breaker.failure_rate") {
            Some(rate) => format!("failures, at a share of {rate}"),
            None => format!(
                "failures, at {} in a row",
                facts
                    .setting("breaker.consecutive_failures")
                    .unwrap_or_default()
            ),
        };
        match facts.some("breaker.slow_call") {
            Some(slow) => answered(format!(
                "{rate}; and answers slower than {slow}, at a share of {}",
                facts.setting("breaker.slow_call_rate").unwrap_or_default()
            )),
            None => missing(format!(
                "{rate}; what is merely slow goes unseen: write breaker.slow_call"
            )),
        }
    })
}

pub(super) fn is_there_a_least_sample(facts: &Facts<'_>) -> Answer {
    of(facts, || {
        let setting = |path| facts.setting(path).unwrap_or_default();
        let is_rated = ["breaker.failure_rate", "breaker.slow_call"];
        match is_rated.iter().any(|path| facts.some(path).is_some()) {
            true => answered(format!(
                "{} calls within {}",
                setting("breaker.minimum_calls"),
                setting("breaker.window")
            )),
            false => answered(format!(
                "it judges no share, but {} failures in a row",
                setting("breaker.consecutive_failures")
            )),
        }
    })
}

pub(super) fn what_does_it_leave_out(facts: &Facts<'_>) -> Answer {
    of(facts, || {
        answered(
            "callers that go away, and what was refused before it was sent; an answer that is the request's own fault is no failure",
        )
    })
}

pub(super) fn are_probes_bounded(facts: &Facts<'_>) -> Answer {
    of(facts, || {
        let setting = |path| facts.setting(path).unwrap_or_default();
        answered(format!(
            "{} at once; {} that succeed close it",
            setting("breaker.probes"),
            setting("breaker.successes_to_close")
        ))
    })
}

pub(super) fn is_there_a_bulkhead(facts: &Facts<'_>) -> Answer {
    match facts.setting("bulkhead.max_concurrent") {
        Some(places) => answered(format!(
            "there is one: {places} operations at once, {} waiting",
            facts.setting("bulkhead.max_waiting").unwrap_or_default()
        )),
        None => open("there is none: can calls that are slow take all that the service has?"),
    }
}
