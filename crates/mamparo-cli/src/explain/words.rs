//! A policy in a few sentences.

use mamparo::policy::{Plan, Policy};

/// What the policy means for a call, as a person would say it.
pub(super) fn words(policy: &Policy) -> String {
    let settings = policy.effective();
    let setting = |path: &str| {
        let found = settings.iter().find(|it| it.path == path);
        found.map(|it| it.value.trim_matches('"'))
    };
    let plan = policy.plan();
    let mut said = vec![limit(policy.name(), &plan), resends(&plan)];
    if plan.attempts() > 1 {
        let ratio = setting("budget.ratio").and_then(|it| it.parse::<f64>().ok());
        let percent = (ratio.unwrap_or_default() * 100_000.0).round() / 1_000.0;
        let least = setting("budget.min_per_second").unwrap_or_default();
        said.push(format!(
            "Resends are paid for up to {percent} % of the operations, and {least} a second on top."
        ));
    }
    if let Some(observes) = setting("breaker.observes") {
        said.push(format!(
            "While it fails, a breaker that counts {observes} lets nothing through but probes."
        ));
    }
    if let Some(places) = setting("bulkhead.max_concurrent") {
        said.push(format!("No more than {places} operations run at once."));
    }
    said.join("\n")
}

fn limit(name: &str, plan: &Plan) -> String {
    match plan.deadline() {
        Some(deadline) => format!(
            "An operation on {name} takes {deadline:?} at most, with all its attempts and waits."
        ),
        None => {
            format!("An operation on {name} may take for ever, unless its caller has a deadline.")
        }
    }
}

fn resends(plan: &Plan) -> String {
    let each = match plan.attempt_timeout() {
        Some(timeout) => format!("each of up to {timeout:?}"),
        None => "each as long as it takes".to_owned(),
    };
    match (plan.attempts(), plan.is_hedged()) {
        (1, _) => match plan.attempt_timeout() {
            Some(timeout) => {
                format!("A request is sent once, for {timeout:?} at most, and never again.")
            }
            None => "A request is sent once, and never again.".to_owned(),
        },
        (many, true) => {
            format!(
                "A slow request is sent again beside the first, up to {many} attempts in all, {each}."
            )
        }
        (many, false) => format!(
            "A request that failed is sent again where that is safe, up to {many} attempts in all, {each}, with waits of {:?} in sum.",
            plan.waits()
        ),
    }
}
