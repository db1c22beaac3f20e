//! Which policy holds for what.

use mamparo_core::InvalidSetting;

use super::Policy;

/// As many rules as can be given.
pub const MAX_RULES: usize = 1_000;

/// Picks a policy by kind of transaction, customer and reason of the refusal: the first rule that fits, else the default.
///
/// The rule for how often and until when is the one that fits when a transaction begins, for what is agreed then stays. The
/// rule for how long a wait is, is the one that fits when it begins.
///
/// ```
/// use mamparo_durable::policy::{Policies, Policy, Rule};
///
/// let patient = Policy::builder().max_attempts(6).build()?;
/// let policies = Policies::new(Policy::default()).rule(Rule::new(patient).kind("payout").reason("NOT_AVAILABLE"))?;
/// assert_eq!(policies.pick("payout", None, Some("NOT_AVAILABLE")).max_attempts(), 6);
/// assert_eq!(policies.pick("payout", None, None).max_attempts(), 4);
/// # Ok::<(), mamparo_core::InvalidSetting>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Policies {
    default: Policy,
    rules: Vec<Rule>,
}

/// A policy, and what it holds for. What is not named fits everything.
#[derive(Clone, Debug)]
pub struct Rule {
    kind: Option<String>,
    customer: Option<String>,
    reason: Option<String>,
    policy: Policy,
}

impl Rule {
    /// Makes a rule that fits everything.
    #[must_use]
    pub const fn new(policy: Policy) -> Self {
        Self {
            kind: None,
            customer: None,
            reason: None,
            policy,
        }
    }

    /// Fits transactions of this kind only.
    #[must_use]
    pub fn kind(mut self, kind: impl Into<String>) -> Self {
        self.kind = Some(kind.into());
        self
    }

    /// Fits this customer's transactions only.
    #[must_use]
    pub fn customer(mut self, customer: impl Into<String>) -> Self {
        self.customer = Some(customer.into());
        self
    }

    /// Fits waits after a refusal with this reason only.
    #[must_use]
    pub fn reason(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }

    fn fits(&self, kind: &str, customer: Option<&str>, reason: Option<&str>) -> bool {
        let fits = |named: &Option<String>, given: Option<&str>| {
            named.is_none() || named.as_deref() == given
        };
        fits(&self.kind, Some(kind)) && fits(&self.customer, customer) && fits(&self.reason, reason)
    }
}

impl Policies {
    /// Begins with what holds where no rule fits.
    #[must_use]
    pub const fn new(default: Policy) -> Self {
        Self {
            default,
            rules: Vec::new(),
        }
    }

    /// Adds a rule after those that are there.
    ///
    /// # Errors
    ///
    /// [`InvalidSetting`] past [`MAX_RULES`].
    pub fn rule(mut self, rule: Rule) -> Result<Self, InvalidSetting> {
        if self.rules.len() == MAX_RULES {
            return Err(InvalidSetting::new(
                "rules",
                MAX_RULES + 1,
                "must be at most 1000",
            ));
        }
        self.rules.push(rule);
        Ok(self)
    }

    /// Returns the policy that holds.
    #[must_use]
    pub fn pick(&self, kind: &str, customer: Option<&str>, reason: Option<&str>) -> &Policy {
        let rule = self
            .rules
            .iter()
            .find(|rule| rule.fits(kind, customer, reason));
        rule.map_or(&self.default, |rule| &rule.policy)
    }
}
