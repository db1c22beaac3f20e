use std::error::Error;
use std::fmt;

/// Which of a budget's caps refused a resend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cap {
    /// The share of operations that may be resent, and the reserve per second, are both spent.
    Traffic,
    /// As many resends are in flight as may be at once.
    Concurrency,
    /// This operation has had all the resends that one operation may have.
    Operation,
    /// This tenant's own share is spent, though the dependency's is not.
    Tenant,
}

/// The error of a resend that the budget does not pay for.
///
/// ```
/// use mamparo_core::budget::Cap;
/// use mamparo_core::{Budget, clock};
/// # fn main() -> Result<(), mamparo_core::InvalidSetting> {
/// let budget = Budget::builder().ratio(0.2).min_per_second(0).build()?;
/// let refused = budget.withdraw(clock::now(), None, 0).unwrap_err();
/// assert_eq!(refused.cap(), Cap::Traffic);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exhausted {
    pub(super) cap: Cap,
}

impl Exhausted {
    /// Returns the cap that refused.
    #[must_use]
    pub fn cap(&self) -> Cap {
        self.cap
    }
}

impl fmt::Display for Exhausted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.cap {
            Cap::Traffic => {
                "resend refused by the budget: the allowed share of operations is spent, use the last answer"
            }
            Cap::Concurrency => {
                "resend refused by the budget: too many resends are in flight, use the last answer"
            }
            Cap::Operation => {
                "resend refused by the budget: this operation has had all its resends, use the last answer"
            }
            Cap::Tenant => {
                "resend refused by the budget: this tenant's share is spent, use the last answer"
            }
        })
    }
}

impl Error for Exhausted {}
