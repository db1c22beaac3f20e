//! Who sends how much.

use std::collections::BTreeSet;

use super::facts::{Answer, Facts, answered, attempts, missing, open};

pub(super) fn who_owns_the_retry(facts: &Facts<'_>) -> Answer {
    let service = facts.service.name.as_str();
    let is_on =
        |names: &[String]| matches!(names, [from, to] if from == service && to == facts.name);
    let through = facts.paths.iter();
    let through = through.filter(|path| path.names.windows(2).any(is_on));
    let mut owners: BTreeSet<_> = through.flat_map(|path| &path.owners).collect();
    let own = service.to_owned();
    if facts.sends_again() {
        owners.insert(&own);
    }
    match owners.into_iter().collect::<Vec<_>>().as_slice() {
        [] => answered("nobody: what fails goes back to the caller"),
        [owner] => answered(format!("{owner}, alone")),
        owners => {
            let owners: Vec<_> = owners.iter().map(|it| it.as_str()).collect();
            missing(format!(
                "{} all send again: let one of them do it",
                owners.join(", ")
            ))
        }
    }
}

/// Whether it is a library, a gateway or a mesh, nobody says.
pub(super) fn who_else_sends_again(facts: &Facts<'_>) -> Answer {
    let others: Vec<_> = facts.service.external(facts.name).collect();
    let named = others
        .iter()
        .map(|(name, number)| format!("{name}, {}", attempts(*number)));
    let named = named.collect::<Vec<_>>().join("; ");
    let again = others.iter().filter(|(_, attempts)| *attempts > 1).count();
    match again {
        _ if others.is_empty() => open(
            "nothing is declared: look, and declare it as [[external_retrier]]; attempts = 1 says that it does not",
        ),
        0 => answered(format!("declared: {named}")),
        1 if !facts.sends_again() => answered(format!("declared: {named}")),
        _ => missing(format!(
            "declared: {named}, besides another: let one of them send again"
        )),
    }
}

pub(super) fn is_an_operation_bounded(facts: &Facts<'_>) -> Answer {
    answered(format!("{} at most", attempts(facts.plan.attempts())))
}

pub(super) fn is_traffic_bounded(facts: &Facts<'_>) -> Answer {
    if !facts.sends_again() {
        return answered("nothing is sent again");
    }
    let percent = ratio(facts) * 100.0;
    // Rounded, because 0.07 times 100 is 7.000000000000001.
    let percent = (percent * 1_000.0).round() / 1_000.0;
    let least = facts.setting("budget.min_per_second").unwrap_or_default();
    let at_once = match facts.some("budget.max_concurrent") {
        Some(most) => format!("; {most} resends at once"),
        None => String::new(),
    };
    answered(format!(
        "{percent} % of the operations and {least} a second on top{at_once}"
    ))
}

fn ratio(facts: &Facts<'_>) -> f64 {
    let ratio = facts.setting("budget.ratio").and_then(|it| it.parse().ok());
    ratio.unwrap_or_default()
}

pub(super) fn is_there_room(facts: &Facts<'_>) -> Answer {
    let at_once = match facts.setting("bulkhead.max_concurrent") {
        Some(places) => format!("{places} operations at once from each instance"),
        None => "as many operations at once as there are callers".to_owned(),
    };
    let over = match facts.sends_again() {
        true => {
            let times = ((1.0 + ratio(facts)) * 1_000.0).round() / 1_000.0;
            let most = attempts(facts.plan.attempts());
            format!("; {most} for one operation, {times} times the operations in the long run")
        }
        false => String::new(),
    };
    open(format!("it may get {at_once}{over}: has it room for that?"))
}
