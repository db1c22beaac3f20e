//! What policy files say of the defer plane, as the settings that follow from it.
//!
//! A dependency's table holds for the transactions whose kind is the dependency's name.

use std::error::Error;
use std::fmt::{self, Display};

use mamparo::policy::{Defer, DeferWait, Policies as Files, Policy as File};
use mamparo_core::InvalidSetting;

use super::{Policies, Policy, Rule, Wait};
use crate::defer::{DeferBuilder, DeferPolicy};
use crate::web::Judge;

/// A dependency's `defer` that can't hold; says where it was written, and what is wrong.
#[derive(Debug)]
pub struct PolicyFileError {
    place: String,
    source: InvalidSetting,
}

impl PolicyFileError {
    fn new(file: &File, source: InvalidSetting) -> Self {
        let (origin, name) = (file.origin(), file.name());
        Self {
            place: format!("{origin}: dependency.{name}.defer"),
            source,
        }
    }
}

impl Display for PolicyFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, source } = self;
        write!(f, "{place}: {source}")
    }
}

impl Error for PolicyFileError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.source)
    }
}

impl Policies {
    /// Takes from policy files how often and how long is waited: a rule for each dependency with `defer`, for the kind of its name.
    ///
    /// ```
    /// use mamparo::policy::{Format, Policies as Files};
    /// use mamparo_durable::policy::Policies;
    ///
    /// let document = r#"
    /// [dependency.psp]
    /// defer = { refused = [409], max_attempts = 6 }
    /// "#;
    /// let files = Files::loader().text("policies.toml", document, Format::Toml).load()?;
    /// let policies = Policies::of_files(&files)?;
    /// assert_eq!(policies.pick("psp", None, None).max_attempts(), 6);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`PolicyFileError`] for waits that make no sense, and past [`MAX_RULES`](super::MAX_RULES) dependencies.
    pub fn of_files(files: &Files) -> Result<Self, PolicyFileError> {
        let mut policies = Self::default();
        for (name, file) in files.iter() {
            let Some(defer) = file.defer() else {
                continue;
            };
            let rule = policy(&defer).map(|policy| Rule::new(policy).kind(name));
            let added = rule.and_then(|rule| policies.rule(rule));
            policies = added.map_err(|error| PolicyFileError::new(file, error))?;
        }
        Ok(policies)
    }
}

impl Judge {
    /// Takes from a dependency's policy what its answers mean; where its `defer` is off, no answer is a refusal.
    ///
    /// # Errors
    ///
    /// [`PolicyFileError`] as of [`JudgeBuilder::build`](crate::web::JudgeBuilder::build).
    pub fn of_file(file: &File) -> Result<Self, PolicyFileError> {
        let judge = file.defer().map_or_else(|| Ok(Self::default()), judge);
        judge.map_err(|error| PolicyFileError::new(file, error))
    }
}

impl DeferPolicy {
    /// Begins with what a dependency's policy says: what its answers mean, and what else is deferred. The kind is the dependency's name.
    ///
    /// ```
    /// use mamparo::policy::{Format, Policies};
    /// use mamparo_durable::defer::DeferPolicy;
    ///
    /// let document = r#"
    /// [dependency.psp]
    /// defer = { field = "status", refused_values = ["CANCELLED"], rejections = true }
    /// "#;
    /// let files = Policies::loader().text("policies.toml", document, Format::Toml).load()?;
    /// let policy = DeferPolicy::of_file(&files.dependency("psp")?)?.max_body(16 * 1024).build()?;
    /// # let _ = policy;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`PolicyFileError`] where `defer` is off, and as of [`JudgeBuilder::build`](crate::web::JudgeBuilder::build).
    pub fn of_file(file: &File) -> Result<DeferBuilder, PolicyFileError> {
        let refused = |error| PolicyFileError::new(file, error);
        let Some(defer) = file.defer() else {
            let reason = "must be on: it says which answers are deferred";
            return Err(refused(InvalidSetting::new("defer", "off", reason)));
        };
        let (rejections, failures) = (defer.rejections, defer.failures);
        let judge = judge(defer).map_err(refused)?;
        Ok(Self::builder(file.name())
            .judge(judge)
            .rejections(rejections.unwrap_or_default())
            .failures(failures.unwrap_or_default()))
    }
}

fn judge(defer: Defer) -> Result<Judge, InvalidSetting> {
    let judge = Judge::builder()
        .refused(defer.refused)
        .declined(defer.declined)
        .refused_values(defer.refused_values)
        .declined_values(defer.declined_values);
    match defer.field {
        Some(field) => judge.field(field).build(),
        None => judge.build(),
    }
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
