//! What a policy file says of the defer plane.

use std::time::Duration;

use http::StatusCode;

use super::Policy;
use super::view::View;

/// What a dependency's `defer` says, as it was written; the defer plane, in the crate `mamparo-durable`, acts on it: its engine, and its
/// layer around a client.
///
/// ```
/// use mamparo::policy::{Format, Policies};
///
/// let document = r#"
/// [dependency.psp]
/// defer = { field = "status", refused_values = ["CANCELLED"], wait = { base = "30m" } }
/// "#;
/// let policies = Policies::loader().text("policies.toml", document, Format::Toml).load()?;
/// let defer = policies.dependency("psp")?.defer().ok_or("it is on")?;
/// assert_eq!(defer.refused_values, ["CANCELLED"]);
/// assert_eq!(defer.max_attempts, None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Defer {
    /// Statuses that mean "not now".
    pub refused: Vec<StatusCode>,
    /// Statuses that mean "never", besides those that do anyway.
    pub declined: Vec<StatusCode>,
    /// The field of a JSON answer that says how it went.
    pub field: Option<String>,
    /// Its values that mean "not now".
    pub refused_values: Vec<String>,
    /// Its values that mean "never".
    pub declined_values: Vec<String>,
    /// Whether a layer around a client defers what the stack refuses to send.
    pub rejections: Option<bool>,
    /// Whether a layer around a client defers technical failures.
    pub failures: Option<bool>,
    /// How many attempts are made, the original included.
    pub max_attempts: Option<u32>,
    /// How many technical failures and postponements are borne.
    pub max_postponements: Option<u32>,
    /// For how long technical failures are borne.
    pub give_up_after: Option<Duration>,
    /// The waits after refusals.
    pub wait: DeferWait,
    /// The waits after technical failures.
    pub technical_wait: DeferWait,
    /// The waits while the breaker is open.
    pub postponed_wait: DeferWait,
}

/// Waits, as far as they were written.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct DeferWait {
    /// The first wait, before jitter.
    pub base: Option<Duration>,
    /// The longest wait, before jitter.
    pub cap: Option<Duration>,
    /// How much longer each wait is than the one before.
    pub factor: Option<f64>,
    /// How far a wait is spread, as a share of it.
    pub jitter: Option<f64>,
    /// Whether the cap holds after the jitter too.
    pub hard_cap: Option<bool>,
}

impl Policy {
    /// Returns what the policy says of the defer plane; none where it is off.
    #[must_use]
    pub fn defer(&self) -> Option<Defer> {
        let view = &self.made().view;
        let texts = |path| view.texts(path).map(ToOwned::to_owned).collect();
        view.is_on("defer", false).then(|| Defer {
            refused: view.statuses("defer.refused").collect(),
            declined: view.statuses("defer.declined").collect(),
            field: view.text("defer.field").map(ToOwned::to_owned),
            refused_values: texts("defer.refused_values"),
            declined_values: texts("defer.declined_values"),
            rejections: view.flag("defer.rejections"),
            failures: view.flag("defer.failures"),
            max_attempts: view.count_u32("defer.max_attempts"),
            max_postponements: view.count_u32("defer.max_postponements"),
            give_up_after: view.duration("defer.give_up_after"),
            wait: wait(view, "defer.wait"),
            technical_wait: wait(view, "defer.technical_wait"),
            postponed_wait: wait(view, "defer.postponed_wait"),
        })
    }
}

fn wait(view: &View, path: &str) -> DeferWait {
    let at = |name: &str| format!("{path}.{name}");
    DeferWait {
        base: view.duration(&at("base")),
        cap: view.duration(&at("cap")),
        factor: view.number(&at("factor")),
        jitter: view.number(&at("jitter")),
        hard_cap: view.flag(&at("hard_cap")),
    }
}
