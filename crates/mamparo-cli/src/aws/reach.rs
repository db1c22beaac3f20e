//! `mamparo aws apply` and `mamparo aws check`.

use mamparo_aws::plan::{self, Finding, Plan, State};
use mamparo_aws::{Aws, Settings};
use serde_json::json;

use super::plan::planned;
use crate::args::ReachArgs;
use crate::defer::{Trouble, ended, written};
use crate::exit::Exit;
use crate::output::{self, Mood};

/// Runs `mamparo aws apply`.
pub(crate) async fn apply(args: ReachArgs) -> Exit {
    ended(make(&args).await)
}

/// Runs `mamparo aws check`.
pub(crate) async fn check(args: ReachArgs) -> Exit {
    ended(compare(&args).await)
}

async fn make(args: &ReachArgs) -> Result<Exit, Trouble> {
    let (aws, plan) = reach(args).await?;
    let found = plan::apply(&aws, &plan, &mut output::note).await?;
    told(args, &found)
}

async fn compare(args: &ReachArgs) -> Result<Exit, Trouble> {
    let (aws, plan) = reach(args).await?;
    let found = plan::check(&aws, &plan).await?;
    told(args, &found)
}

async fn reach(args: &ReachArgs) -> Result<(Aws, Plan), Trouble> {
    let plan = planned(&args.of)?;
    let mut settings = Settings::builder().prefix(&args.of.prefix);
    if let Some(region) = &args.region {
        settings = settings.region(region);
    }
    if let Some(endpoint) = &args.endpoint {
        settings = settings.endpoint(endpoint);
    }
    let settings = settings.build().map_err(Trouble::setting)?;
    Ok((Aws::connect(settings).await?, plan))
}

fn told(args: &ReachArgs, found: &[Finding]) -> Result<Exit, Trouble> {
    let good = !found.iter().any(Finding::is_trouble);
    let text = match args.json {
        true => format!("{:#}\n", json!({ "as_planned": good, "findings": found })),
        false => found.iter().map(line).collect(),
    };
    match (written(&text)?, good) {
        (Exit::Success, false) => Ok(Exit::REFUSED),
        (exit, _) => Ok(exit),
    }
}

fn line(finding: &Finding) -> String {
    let (word, mood) = match finding.state {
        State::Good => ("ok      ", Mood::Good),
        State::Missing => ("missing ", Mood::Bad),
        State::Differs => ("differs ", Mood::Bad),
        State::Stranger => ("stranger", Mood::Bad),
        _ => ("unseen  ", Mood::Doubtful),
    };
    let Finding {
        resource,
        says,
        remedy,
        ..
    } = finding;
    let said = output::plain(&match remedy.is_empty() {
        true => format!("{resource} {says}"),
        false => format!("{resource} {says}: {remedy}"),
    });
    format!("{}  {said}\n", output::painted(mood, word))
}
