use super::handle::Shared;
use super::state::{Ledger, Receipt};
use std::fmt;
use std::sync::Arc;

/// One operation's deposit, kept until the operation ends; only a budget with a `concurrent_ratio` counts that end.
///
/// Dropping it early takes no tokens back: the operation then no longer counts as in flight.
#[must_use = "an operation is in flight as long as its deposit is kept"]
pub struct Deposit {
    counted: Option<Arc<Shared>>,
}

impl Deposit {
    pub(super) fn new(counted: Option<Arc<Shared>>) -> Self {
        Self { counted }
    }
}

impl Drop for Deposit {
    fn drop(&mut self) {
        if let Some(shared) = &self.counted {
            shared.operation_ended();
        }
    }
}

/// The token for one resend that was not sent yet: given back on drop, spent by [`spend`](Self::spend).
///
/// ```
/// use mamparo_core::{Budget, clock};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let budget = Budget::builder().ratio(0.0).min_per_second(1).build()?;
/// let now = clock::now();
/// drop(budget.withdraw(now, None, 0)?);          // given back
/// let in_flight = budget.withdraw(now, None, 0)?.spend();
/// drop(in_flight);                               // the resend is over, its token stays spent
/// assert!(budget.withdraw(now, None, 0).is_err());
/// # Ok(())
/// # }
/// ```
#[must_use = "dropping it gives the token back; `spend` it when the resend is sent"]
pub struct Withdrawal {
    unspent: Option<Arc<Shared>>,
    receipt: Receipt,
    /// Whether it is for the operation's first resend.
    first: bool,
}

impl Withdrawal {
    pub(super) fn new(shared: Arc<Shared>, receipt: Receipt, first: bool) -> Self {
        Self {
            unspent: Some(shared),
            receipt,
            first,
        }
    }

    /// Spends the token: the resend is being sent. Keep the result until its head or its error is there.
    pub fn spend(mut self) -> InFlight {
        let shared = self.unspent.take();
        if let Some(shared) = shared.as_ref().filter(|_| self.first) {
            shared.resent();
        }
        InFlight {
            shared,
            receipt: self.receipt,
            first: self.first,
        }
    }
}

impl Drop for Withdrawal {
    fn drop(&mut self) {
        if let Some(shared) = self.unspent.take() {
            shared.with_ledger(|ledger, settings| ledger.give_back(settings, self.receipt));
        }
    }
}

/// A resend that was paid for and is being sent; on drop its token is consumed, and its place among those in flight free.
#[must_use = "a resend is in flight as long as this is kept"]
pub struct InFlight {
    shared: Option<Arc<Shared>>,
    receipt: Receipt,
    first: bool,
}

impl InFlight {
    /// Gives the token back after all: the resend was refused on our side, and so never reached the dependency.
    ///
    /// ```
    /// use mamparo_core::{Budget, clock};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let budget = Budget::builder().ratio(0.0).min_per_second(1).build()?;
    /// budget.withdraw(clock::now(), None, 0)?.spend().not_sent();
    /// assert_eq!(budget.consumed(), 0);
    /// assert!(budget.withdraw(clock::now(), None, 0).is_ok());
    /// # Ok(())
    /// # }
    /// ```
    pub fn not_sent(mut self) {
        if let Some(shared) = self.shared.take() {
            if self.first {
                shared.not_resent();
            }
            shared.with_ledger(|ledger, settings| ledger.give_back(settings, self.receipt));
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.take() {
            shared.consume();
            shared.with_ledger(|ledger: &mut Ledger, _| ledger.leave());
        }
    }
}

impl fmt::Debug for Deposit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deposit").finish_non_exhaustive()
    }
}

impl fmt::Debug for Withdrawal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Withdrawal").finish_non_exhaustive()
    }
}

impl fmt::Debug for InFlight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InFlight").finish_non_exhaustive()
    }
}
