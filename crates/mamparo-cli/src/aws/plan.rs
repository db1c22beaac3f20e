//! `mamparo aws plan`.

use mamparo_aws::plan::{Load, PRICED, PRICED_IN, PRICES, Place, Plan, million};
use serde_json::{Value, json};

use super::text;
use crate::args::{Delay, Format, OfArgs, PlanArgs, Rate};
use crate::defer::{Trouble, ended, written};
use crate::exit::Exit;

/// Runs `mamparo aws plan`.
pub(crate) fn plan(args: &PlanArgs) -> Exit {
    ended(print(args))
}

fn print(args: &PlanArgs) -> Result<Exit, Trouble> {
    let plan = planned(&args.of)?;
    let load = load(args.rate, args.mean_wait)?;
    let place = Place::new(&args.region, &args.account);
    let format = match args.json {
        true => Format::Json,
        false => args.format,
    };
    written(&match format {
        Format::Text => text::plan(&plan, &place, load.as_ref()),
        Format::Json => {
            let mut json = plan.json(&place);
            if let Some(load) = &load {
                json["capacity"] = capacity(load);
            }
            format!("{json:#}\n")
        }
        Format::Cloudformation => plan.cloudformation(),
        Format::Terraform => plan.terraform(),
    })
}

/// Makes the plan that was asked for.
pub(super) fn planned(of: &OfArgs) -> Result<Plan, Trouble> {
    let mut plan = Plan::new(&of.prefix).map_err(Trouble::setting)?;
    if let Some(key) = &of.kms_key {
        plan = plan.encrypted_with(key).map_err(Trouble::setting)?;
    }
    Ok(plan)
}

fn load(rate: Option<Rate>, mean_wait: Option<Delay>) -> Result<Option<Load>, Trouble> {
    let (Some(rate), Some(mean_wait)) = (rate, mean_wait) else {
        return Ok(None);
    };
    let per_second = f64::from(rate.count) / rate.period.as_secs_f64();
    let load = Load::new(per_second, mean_wait.0);
    load.map(Some).map_err(Trouble::setting)
}

fn capacity(load: &Load) -> Value {
    json!({
        "active_schedules": load.active(),
        "needs": load.needs(),
        "prices": { "of": PRICED, "region": PRICED_IN, "billed": PRICES },
        "dollars_per_million_deferrals": million(),
        "dollars_per_month": load.a_month(),
    })
}
