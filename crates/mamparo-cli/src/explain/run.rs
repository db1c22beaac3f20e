//! The explanation, from what was typed to how it exits.

use mamparo::policy::{Policies, Policy, ServerPolicy};

use super::markdown::{self, markdown};
use super::record::{self, record};
use super::words::words;
use crate::args::{ExplainArgs, Rate};
use crate::exit::Exit;
use crate::output;
use crate::policies::{Finding, files, framed};

/// Runs `mamparo explain`.
pub(crate) fn explain(args: &ExplainArgs) -> Exit {
    let mut all = Vec::new();
    for path in &args.policy {
        match files(path) {
            Ok(files) => all.extend(files),
            Err(error) => return refuse(&error),
        }
    }
    let policies = match Policies::load(&all) {
        Ok(policies) => policies,
        Err(refused) => {
            for problem in refused.problems() {
                output::note(&framed(&Finding::from(problem)));
            }
            output::error("the policies are refused");
            return Exit::REFUSED;
        }
    };
    let chosen = match &args.dependency {
        None => policies.iter().map(|(_, policy)| policy.clone()).collect(),
        Some(name) => match policies.dependency(name) {
            Ok(policy) => vec![policy],
            Err(unknown) => return refuse(&unknown.to_string()),
        },
    };
    // Of one dependency alone, the server is no part.
    let server = Some(policies.server()).filter(|it| it.is_written() && args.dependency.is_none());
    let text = said(args, &chosen, server);
    Exit::Success.written(&output::report(&text))
}

fn refuse(error: &str) -> Exit {
    output::error(error);
    Exit::Usage
}

fn said(args: &ExplainArgs, policies: &[Policy], own: Option<&ServerPolicy>) -> String {
    if args.markdown {
        return markdown(policies) + &own.map_or_else(String::new, markdown::server);
    }
    if args.json {
        let mut all =
            serde_json::json!({ "dependencies": policies.iter().map(record).collect::<Vec<_>>() });
        if let Some(own) = own {
            all["server"] = record::server(own);
        }
        return format!("{all:#}\n");
    }
    let traffic = args.traffic;
    let own = own.map(ServerPolicy::describe);
    let texts = policies.iter().map(|policy| {
        let paid = traffic.map_or_else(String::new, |rate| paid(policy, rate));
        format!("{}\n\n{}{paid}", words(policy), policy.describe())
    });
    own.into_iter().chain(texts).collect::<Vec<_>>().join("\n")
}

/// What the budget pays for: 8 % of 10000 operations in 1m are 800 resends.
fn paid(policy: &Policy, traffic: Rate) -> String {
    let settings = policy.effective();
    let number = |path: &str| {
        let setting = settings.iter().find(|it| it.path == path)?;
        setting.value.parse::<f64>().ok()
    };
    let ratio = number("budget.ratio").unwrap_or_default();
    let least = number("budget.min_per_second").unwrap_or_default();
    let period = traffic.period;
    let (resends, more) = (
        ratio * f64::from(traffic.count),
        least * period.as_secs_f64(),
    );
    let more = match more {
        0.0 => String::new(),
        _ => format!(
            ", and budget.min_per_second pays for up to {} more",
            more.round()
        ),
    };
    // Rounded, because 0.07 times 100 is 7.000000000000001.
    let percent = (ratio * 100_000.0).round() / 1_000.0;
    format!(
        "budget: {percent} % of {} operations in {} are {} resends{more}\n",
        traffic.count,
        humantime::format_duration(period),
        resends.round()
    )
}
