//! How long it all takes.

use std::time::Duration;

use super::facts::{Answer, Facts, answered, attempts, missing};

pub(super) fn is_there_a_deadline(facts: &Facts<'_>) -> Answer {
    match facts.some("deadline") {
        Some(deadline) => answered(format!("{deadline}, or what the caller has left")),
        None => missing("none but the caller's: write deadline"),
    }
}

pub(super) fn does_it_travel(facts: &Facts<'_>) -> Answer {
    let header = match facts.is_grpc() {
        true => "grpc-timeout",
        false => "x-request-timeout-ms",
    };
    answered(format!("what remains goes with each attempt, in {header}"))
}

pub(super) fn are_all_phases_bounded(facts: &Facts<'_>) -> Answer {
    let attempt = facts.plan.attempt_timeout().map(|it| format!("{it:?}"));
    let phases = [
        ("connect_timeout", facts.some("connect_timeout")),
        ("attempt_timeout", attempt.as_deref()),
        ("body_idle", facts.some("body_idle")),
    ];
    let endless = phases.iter().filter(|(_, limit)| limit.is_none());
    let endless: Vec<_> = endless.map(|(name, _)| *name).collect();
    if !endless.is_empty() {
        return missing(format!("nothing bounds {}", endless.join(" and ")));
    }
    let [connect, attempt, body] = phases.map(|(_, limit)| limit.unwrap_or_default());
    answered(format!(
        "to connect {connect}; to the answer's head, writing and the wait for a connection included, {attempt}; between two pieces of its \
         body {body}"
    ))
}

pub(super) fn how_many_attempts_fit(facts: &Facts<'_>) -> Answer {
    let plan = &facts.plan;
    let Some(deadline) = plan.deadline() else {
        return missing("as many as there are: no deadline bounds them");
    };
    let many = attempts(plan.attempts());
    if plan.is_hedged() {
        return answered(format!("{many} side by side in {}", millis(deadline)));
    }
    match (plan.sum(), plan.fit()) {
        (Some(sum), Some(fit)) => answered(format!("{sum} in {}: {fit}", millis(deadline))),
        _ => missing(format!(
            "one of {many}: it may take all of {}",
            millis(deadline)
        )),
    }
}

pub(super) fn is_time_kept_back(facts: &Facts<'_>) -> Answer {
    match (facts.plan.deadline(), facts.setting("reserve")) {
        (Some(_), Some(reserve)) => answered(reserve),
        _ => missing("without a deadline there is nothing to keep back from"),
    }
}

pub(super) fn can_waits_use_it_up(facts: &Facts<'_>) -> Answer {
    let plan = &facts.plan;
    if plan.waits().is_zero() {
        return answered("there are none");
    }
    match plan.deadline() {
        Some(deadline) => answered(format!(
            "{} of {} at most, and none begins after which nothing could be sent",
            millis(plan.waits()),
            millis(deadline)
        )),
        None => missing(format!(
            "{}, and what the dependency asks for on top, with no deadline to end them",
            millis(plan.waits())
        )),
    }
}

fn millis(time: Duration) -> String {
    format!("{} ms", time.as_secs_f64() * 1000.0)
}
