//! The rules.

use std::time::Duration;

use super::budget::Plan;
use super::{defer, resends};
use crate::policy::Problem;
use crate::policy::build::{attempt_timeout_path, max_attempts};
use crate::policy::describe::millis;
use crate::policy::view::View;

type Rule = fn(&View) -> Option<Problem>;

const ALL: &[Rule] = &[
    limits_are_longer_than_zero,
    attempts_fit_the_deadline,
    an_attempt_is_shorter_than_the_deadline,
    a_wait_is_shorter_than_the_deadline,
    one_owner_of_resends,
    a_window_sees_the_minimum_of_calls,
    a_budget_is_less_than_everything,
    resends::an_unsafe_request_carries_a_key,
    resends::a_key_is_known_until_the_last_resend,
    a_rate_has_a_count,
    shedding_has_a_rule,
    a_deadline_is_set,
    waits_are_spread,
    resends::a_breaker_sees_what_resends_mend,
    resends::statuses_and_methods_are_of_http,
];

/// Adds what contradicts itself, and what is legal but unwise.
pub(in crate::policy) fn check(view: &View, problems: &mut Vec<Problem>) {
    problems.extend(ALL.iter().filter_map(|rule| rule(view)));
    defer::deferred_requests_come_back(view, problems);
}

/// What may not be zero, because nothing would ever be sent.
const LIMITS: &[&str] = &[
    "deadline",
    "retry.attempt_timeout",
    "hedge.attempt_timeout",
    "connect_timeout",
    "body_idle",
];

fn limits_are_longer_than_zero(view: &View) -> Option<Problem> {
    let is_zero = |path: &&&str| view.duration(path) == Some(Duration::ZERO);
    let path = LIMITS.iter().find(is_zero)?;
    Some(Problem::error(
        "bad-value",
        &view.origin(path),
        view.path(path),
        "what may take no time at all never succeeds",
        r#"write how long it may take, or "none" for no limit"#,
    ))
}

/// What comes from defaults is trimmed when a call is made, and never refused: both numbers must have been written.
fn attempts_fit_the_deadline(view: &View) -> Option<Problem> {
    let (attempts_path, timeout_path) = (attempts_path(view), attempt_timeout_path(view));
    if !view.is_written(attempts_path) || !view.is_written(timeout_path) {
        return None;
    }
    let plan = Plan::of(view);
    let (potential, deadline) = (plan.potential()?, plan.deadline()?);
    if potential <= deadline || plan.attempt_timeout()? >= deadline {
        return None;
    }
    let message = format!(
        "{} does not fit {}: {}",
        plan.sum()?,
        millis(deadline),
        plan.fit()?
    );
    let origin = view.origin(attempts_path);
    let remedy = format!(
        "make fewer attempts, shorten {timeout_path} ({}), or lengthen the deadline ({})",
        view.origin(timeout_path),
        view.origin("deadline")
    );
    Some(Problem::error(
        "attempts-exceed-deadline",
        &origin,
        view.path(attempts_path),
        message,
        remedy,
    ))
}

fn attempts_path(view: &View) -> &'static str {
    if view.is_on("hedge", false) {
        "hedge.max_attempts"
    } else {
        "retry.max_attempts"
    }
}

fn an_attempt_is_shorter_than_the_deadline(view: &View) -> Option<Problem> {
    let path = attempt_timeout_path(view);
    let timeout = view.duration(path)?;
    let deadline = Plan::of(view).deadline()?;
    // A deadline of zero has its own rule.
    if deadline.is_zero() || timeout < deadline || max_attempts(view) == 1 && timeout == deadline {
        return None;
    }
    let message = format!(
        "one attempt may take {}, and the whole operation {}: the first attempt takes all of it",
        millis(timeout),
        millis(deadline)
    );
    let remedy = format!(
        "make it shorter than the deadline, {} ({})",
        millis(deadline),
        view.origin("deadline")
    );
    Some(Problem::error(
        "attempt-exceeds-deadline",
        &view.origin(path),
        view.path(path),
        message,
        remedy,
    ))
}

fn a_wait_is_shorter_than_the_deadline(view: &View) -> Option<Problem> {
    let path = "retry.backoff.cap";
    let cap = view.duration(path)?;
    let deadline = Plan::of(view).deadline()?;
    if cap <= deadline {
        return None;
    }
    let message = format!(
        "a wait may take {}, and the whole operation {}",
        millis(cap),
        millis(deadline)
    );
    let remedy = format!(
        "make it shorter than the deadline, {} ({})",
        millis(deadline),
        view.origin("deadline")
    );
    Some(Problem::error(
        "backoff-exceeds-deadline",
        &view.origin(path),
        view.path(path),
        message,
        remedy,
    ))
}

fn one_owner_of_resends(view: &View) -> Option<Problem> {
    if !view.is_on("hedge", false) || !view.is_on("retry", false) {
        return None;
    }
    let message = format!(
        "retry ({}) and hedge would both send requests again, and one of them owns that",
        view.origin("retry")
    );
    let remedy = r#"write retry = "off", or hedge = "off""#;
    Some(Problem::error(
        "two-owners",
        &view.origin("hedge"),
        view.path("hedge"),
        message,
        remedy,
    ))
}

/// Where a rate limit bounds the calls, that bounds what a window can hold.
fn a_window_sees_the_minimum_of_calls(view: &View) -> Option<Problem> {
    let path = "breaker.minimum_calls";
    let least = view.count(path)?;
    let count = view
        .count("rate_limit.count")
        .filter(|_| view.is_on("rate_limit", false))?;
    let period = view.duration_or("rate_limit.period", Duration::from_secs(1));
    let window = view.duration_or("breaker.window", Duration::from_secs(10));
    let seen = count as f64 * window.as_secs_f64() / period.as_secs_f64();
    if seen >= least as f64 {
        return None;
    }
    let message = format!(
        "{count} per {} are {seen} calls in a window of {}: it never judges a rate",
        millis(period),
        millis(window)
    );
    let remedy = format!(
        "ask for {} calls at most, or lengthen breaker.window",
        seen.floor()
    );
    Some(Problem::error(
        "window-too-small",
        &view.origin(path),
        view.path(path),
        message,
        remedy,
    ))
}

fn a_budget_is_less_than_everything(view: &View) -> Option<Problem> {
    let path = "budget.ratio";
    let ratio = view.number(path).filter(|ratio| *ratio > 1.0)?;
    let message = format!(
        "{} % of the operations may be sent again: that is more than each of them once, which bounds nothing",
        ratio * 100.0
    );
    Some(Problem::error(
        "budget-too-large",
        &view.origin(path),
        view.path(path),
        message,
        "write a share from 0 to 1: 0.2 is 20 %, the default",
    ))
}

fn a_rate_has_a_count(view: &View) -> Option<Problem> {
    if !view.is_on("rate_limit", false) || view.is_written("rate_limit.count") {
        return None;
    }
    let message = "a rate limit needs to know how many attempts pass in a period";
    let remedy = r#"write count, and period if it is not "1s""#;
    Some(Problem::error(
        "missing-value",
        &view.origin("rate_limit"),
        view.path("rate_limit"),
        message,
        remedy,
    ))
}

fn shedding_has_a_rule(view: &View) -> Option<Problem> {
    if !view.is_on("load_shed", false) || view.is_written("load_shed.max_in_flight") {
        return None;
    }
    let message = "it does not say at which load operations are refused";
    Some(Problem::error(
        "missing-value",
        &view.origin("load_shed"),
        view.path("load_shed"),
        message,
        "write max_in_flight = 200, or as many operations as may be under way before the next is refused",
    ))
}

fn a_deadline_is_set(view: &View) -> Option<Problem> {
    if view.limit_or("deadline", Duration::ZERO).is_some() {
        return None;
    }
    let plan = Plan::of(view);
    let at_least = match plan.sum().filter(|_| plan.attempts() > 1) {
        Some(sum) => format!(": {sum}, and what the dependency asks to wait on top"),
        None => String::new(),
    };
    let message =
        format!("an operation may take for ever, unless its caller has a deadline{at_least}");
    Some(Problem::warning(
        "no-deadline",
        &view.origin("deadline"),
        view.path("deadline"),
        message,
        r#"write how long its caller can wait at most, such as deadline = "2s""#,
    ))
}

fn waits_are_spread(view: &View) -> Option<Problem> {
    let path = "retry.backoff.jitter";
    if view.text(path) != Some("none") {
        return None;
    }
    let message = "callers that fail together come back together";
    Some(Problem::warning(
        "no-jitter",
        &view.origin(path),
        view.path(path),
        message,
        r#"write "full", or leave it out"#,
    ))
}
