//! From policy files to what the engine needs of them.

use std::path::PathBuf;

use mamparo::policy::{Defer, DeferWait, Policies as Files, Policy as File};
use mamparo_core::InvalidSetting;
use mamparo_durable::policy::{Policies, Policy, Rule, Wait};
use mamparo_durable::web::Judge;

use super::trouble::Trouble;
use crate::output;
use crate::policies::{Finding, files, framed};

/// Loads policy files, and tells all that is wrong with them.
pub(super) fn load(paths: &[PathBuf]) -> Result<Files, Trouble> {
    let mut all = Vec::new();
    for path in paths {
        all.extend(files(path).map_err(Trouble::usage)?);
    }
    Files::load(&all).map_err(|refused| {
        for problem in refused.problems() {
            output::note(&framed(&Finding::from(problem)));
        }
        Trouble::refused("the policies are refused")
    })
}

/// How often and how long is waited: by dependency, which is the kind of its transactions.
pub(super) fn policies(files: &Files) -> Result<Policies, Trouble> {
    let mut policies = Policies::new(Policy::default());
    for (name, file) in files.iter() {
        let Some(defer) = file.defer() else {
            continue;
        };
        let policy = policy(&defer).map_err(|error| refused(file, &error))?;
        let rule = Rule::new(policy).kind(name);
        policies = policies.rule(rule).map_err(|error| refused(file, &error))?;
    }
    Ok(policies)
}

/// What the answers of a dependency mean.
pub(super) fn judge(file: &File) -> Result<Judge, Trouble> {
    let Some(defer) = file.defer() else {
        return Ok(Judge::default());
    };
    let mut judge = Judge::builder()
        .refused(defer.refused)
        .declined(defer.declined)
        .refused_values(defer.refused_values)
        .declined_values(defer.declined_values);
    if let Some(field) = defer.field {
        judge = judge.field(field);
    }
    judge.build().map_err(|error| refused(file, &error))
}

fn refused(file: &File, error: &InvalidSetting) -> Trouble {
    let (origin, name) = (file.origin(), file.name());
    Trouble::refused(format!("{origin}: dependency.{name}.defer: {error}"))
}

fn policy(defer: &Defer) -> Result<Policy, InvalidSetting> {
    let defaults = Policy::default();
    let mut builder = Policy::builder()
        .business(wait(defer.wait, defaults.business())?)
        .technical(wait(defer.technical_wait, defaults.technical())?)
        .postponed(wait(defer.postponed_wait, defaults.postponed())?);
    if let Some(attempts) = defer.max_attempts {
        builder = builder.max_attempts(attempts);
    }
    if let Some(postponements) = defer.max_postponements {
        builder = builder.max_postponements(postponements);
    }
    if let Some(limit) = defer.give_up_after {
        builder = builder.give_up_after(limit);
    }
    builder.build()
}

fn wait(written: DeferWait, default: &Wait) -> Result<Wait, InvalidSetting> {
    let mut builder = Wait::builder().base(default.base()).cap(default.cap());
    // Of base and cap, the one that nobody wrote gives way.
    if let Some(base) = written.base {
        builder = builder.base(base).cap(default.cap().max(base));
    }
    if let Some(cap) = written.cap {
        let base = written.base.unwrap_or(default.base().min(cap));
        builder = builder.base(base).cap(cap);
    }
    if let Some(factor) = written.factor {
        builder = builder.factor(factor);
    }
    if let Some(jitter) = written.jitter {
        builder = builder.jitter(jitter);
    }
    if let Some(hard) = written.hard_cap {
        builder = builder.hard_cap(hard);
    }
    builder.build()
}
