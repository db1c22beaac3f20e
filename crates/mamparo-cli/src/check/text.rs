//! The report for people.

use std::time::Duration;

use mamparo::policy::Plan;

use super::chain::Path;
use super::found::{Checked, Found};
use crate::output::{Mood, painted};
use crate::policies::framed;

/// What each dependency costs, each path, and what is wrong.
pub(super) fn text(found: &Found) -> String {
    let mut text = String::new();
    for service in found.services.iter().filter(|service| !service.is_refused) {
        text.push_str(&budgets(service));
    }
    for path in &found.paths {
        text.push_str(&along(path));
    }
    if !found.paths.is_empty() {
        text.push('\n');
    }
    for question in &found.questions {
        text.push_str(&format!(
            "{} {question}\n\n",
            painted(Mood::Frame, "question:")
        ));
    }
    for finding in &found.findings {
        text.push_str(&framed(finding));
        text.push('\n');
    }
    text.push_str(&verdict(found));
    text
}

fn budgets(service: &Checked) -> String {
    let many = plural(service.dependencies.len(), "dependency", "dependencies");
    let mut text = format!("{}: {many}\n", service.name);
    for dependency in &service.dependencies {
        text.push_str(&format!("  {}\n", dependency.name));
        for line in arithmetic(&dependency.figures.plan) {
            text.push_str(&format!("    {line}\n"));
        }
    }
    text.push('\n');
    text
}

/// How attempts and waits fit into the deadline.
fn arithmetic(plan: &Plan) -> Vec<String> {
    let attempts = plural(plan.attempts() as usize, "attempt", "attempts");
    let limit = match plan.deadline() {
        Some(deadline) => format!("a deadline of {}", millis(deadline)),
        None => "no deadline".to_owned(),
    };
    let Some(sum) = plan.sum().filter(|_| plan.attempts() > 1) else {
        let how = if plan.is_hedged() {
            " side by side"
        } else {
            ""
        };
        let each = match plan.attempt_timeout() {
            Some(timeout) => format!("of up to {}", millis(timeout)),
            None => "without a timeout of its own".to_owned(),
        };
        return vec![format!("{attempts}{how} {each}; {limit}")];
    };
    let Some((potential, deadline)) = plan.potential().zip(plan.deadline()) else {
        return vec![format!("{attempts} and waits: {sum}; {limit}")];
    };
    let (split, fit) = (
        plan.split().unwrap_or_default(),
        plan.fit().unwrap_or_default(),
    );
    let cut = match potential > deadline {
        true => format!("; it cuts them: {fit}"),
        false => String::new(),
    };
    vec![
        format!("{attempts} and waits: {sum}; {limit}{cut}"),
        format!("at worst spent as {split} = {}", millis(deadline)),
    ]
}

pub(super) fn along(path: &Path) -> String {
    let names = path.names.join(" → ");
    // What was declared to send nothing again is no factor.
    let factors = path.factors.iter();
    let factors: Vec<_> = factors
        .filter(|it| !it.external || it.attempts > 1)
        .map(|it| it.attempts.to_string())
        .collect();
    let calls = plural(
        usize::try_from(path.calls).unwrap_or(usize::MAX),
        "call",
        "calls",
    );
    let product = match factors.as_slice() {
        [_] => calls,
        _ => format!("{} = {calls}", factors.join(" × ")),
    };
    let owners = match path.owners.as_slice() {
        [] => "nobody sends again".to_owned(),
        [owner] => format!("{owner} owns the retry"),
        owners => format!("sent again by {}", owners.join(", ")),
    };
    format!("{names}: at worst {product}; {owners}\n")
}

fn verdict(found: &Found) -> String {
    let dependencies: usize = found.services.iter().map(|it| it.dependencies.len()).sum();
    let checked = plural(dependencies, "dependency", "dependencies");
    let errors = plural(found.errors, "error", "errors");
    let warnings = plural(found.warnings, "warning", "warnings");
    match (found.errors, found.warnings) {
        (0, 0) => format!(
            "{} {checked}, nothing contradicts itself\n",
            painted(Mood::Good, "ok:")
        ),
        (0, _) => format!("{} {checked}, {warnings}\n", painted(Mood::Doubtful, "ok:")),
        (_, 0) => format!("{} {errors}\n", painted(Mood::Bad, "refused:")),
        _ => format!("{} {errors}, {warnings}\n", painted(Mood::Bad, "refused:")),
    }
}

fn plural(number: usize, one: &str, many: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        _ => format!("{number} {many}"),
    }
}

fn millis(time: Duration) -> String {
    format!("{} ms", time.as_secs_f64() * 1000.0)
}
