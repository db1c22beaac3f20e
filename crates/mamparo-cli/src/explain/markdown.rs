//! The tables for a service's README.

use std::time::Duration;

use mamparo::policy::{Effective, Policy, ServerPolicy};

const HEAD: &str = "\
| dependency | url | deadline | attempts | attempt timeout | breaker | at once | at worst |
|---|---|---|---|---|---|---|---|
";

/// A row for each dependency.
pub(super) fn markdown(policies: &[Policy]) -> String {
    let rows = policies.iter().map(row);
    format!("{HEAD}{}", rows.collect::<String>())
}

/// A row for each setting of the server that somebody wrote.
pub(super) fn server(policy: &ServerPolicy) -> String {
    let settings = policy.effective();
    let written = settings.iter().filter(|it| it.origin.is_written());
    let rows = written.map(|it| format!("| {} | {} |\n", it.path, escaped(&it.value)));
    format!("\n| server | |\n|---|---|\n{}", rows.collect::<String>())
}

fn row(policy: &Policy) -> String {
    let settings = policy.effective();
    let plan = policy.plan();
    let limit =
        |time: Option<Duration>| time.map_or_else(|| "none".to_owned(), |it| format!("{it:?}"));
    let attempts = match (plan.attempts(), plan.is_hedged()) {
        (1, _) => "1, no resend".to_owned(),
        (many, false) => format!("{many}, one by one"),
        (many, true) => format!("{many}, side by side"),
    };
    let worst = policy.worst_case();
    let plural = if worst.attempts == 1 { "" } else { "s" };
    let cells = [
        policy.name().to_owned(),
        policy.url().unwrap_or_default().to_owned(),
        limit(plan.deadline()),
        attempts,
        limit(plan.attempt_timeout()),
        breaker(&settings),
        setting(&settings, "bulkhead.max_concurrent")
            .unwrap_or("off")
            .to_owned(),
        format!(
            "{} attempt{plural} in {}",
            worst.attempts,
            limit(worst.time)
        ),
    ];
    let cells = cells.map(|cell| escaped(&cell));
    format!("| {} |\n", cells.join(" | "))
}

fn breaker(settings: &[Effective]) -> String {
    let Some(observes) = setting(settings, "breaker.observes") else {
        return "off".to_owned();
    };
    let count = match setting(settings, "breaker.failure_rate") {
        Some(rate) if rate != "none" => format!("failure rate {rate}"),
        _ => format!(
            "{} failures in a row",
            setting(settings, "breaker.consecutive_failures").unwrap_or_default()
        ),
    };
    format!("{count}, of {}", observes.trim_matches('"'))
}

fn setting<'a>(settings: &'a [Effective], path: &str) -> Option<&'a str> {
    let found = settings.iter().find(|it| it.path == path)?;
    Some(&found.value)
}

fn escaped(cell: &str) -> String {
    cell.replace('|', "\\|").replace(['\n', '\r'], " ")
}
