//! What can be told of a dependency without building it.

use super::check::Plan;
use super::view::{Effective, View};
use super::{Origin, Policy};

/// What the files say of a dependency, whether its policy was accepted or refused.
///
/// ```
/// use mamparo::policy::{Format, Policies};
///
/// let document = "[dependency.psp]\nretry = { max_attempts = 4, methods = [\"POST\"] }";
/// let refused = Policies::loader().text("policies.toml", document, Format::Toml).load().unwrap_err();
/// assert_eq!(refused.outlines()[0].plan().attempts(), 4);
/// ```
#[derive(Clone, Debug)]
pub struct Outline {
    view: View,
}

impl Outline {
    pub(super) const fn new(view: View) -> Self {
        Self { view }
    }

    /// Returns the dependency's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.view.name
    }

    /// Returns where its table begins.
    #[must_use]
    pub const fn origin(&self) -> &Origin {
        &self.view.origin
    }

    /// Returns the arithmetic of its deadline.
    #[must_use]
    pub fn plan(&self) -> Plan {
        Plan::of(&self.view)
    }

    /// Returns every setting with the value that holds, and where it comes from.
    #[must_use]
    pub fn effective(&self) -> Vec<Effective> {
        self.view.effective()
    }
}

impl Policy {
    /// Returns what the files say of the dependency, without what was built of it.
    #[must_use]
    pub fn outline(&self) -> Outline {
        Outline::new(self.made().view.clone())
    }
}
