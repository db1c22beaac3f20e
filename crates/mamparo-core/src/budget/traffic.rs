//! What a budget counts of its traffic, beside the tokens.

/// The operations that paid into a budget, and what became of those that were sent again.
///
/// Read while others count, one figure may be an operation ahead of another.
///
/// ```
/// use mamparo_core::{Budget, clock};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let budget = Budget::default();
/// for _ in 0..4 {
///     drop(budget.deposit(None));
/// }
/// drop(budget.withdraw(clock::now(), None, 0)?.spend()); // the first resend of one of them
/// budget.note_recovered();
/// let traffic = budget.traffic();
/// assert_eq!((traffic.operations, traffic.attempts()), (4, 5));
/// assert_eq!((traffic.amplification(), traffic.recovery_rate()), (Some(1.25), Some(1.0)));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Traffic {
    /// Operations that reached whatever owns the resends.
    pub operations: u64,
    /// Those of which nothing was sent: their only attempt was refused on our side.
    pub unsent: u64,
    /// Those that were sent more than once.
    pub resent: u64,
    /// Those that were sent more than once and succeeded.
    pub recovered: u64,
    /// Resends that were sent and have their answer.
    pub resends: u64,
}

impl Traffic {
    /// Returns how many attempts were made: the first of each operation that was sent, and the resends.
    #[must_use]
    pub const fn attempts(&self) -> u64 {
        self.operations
            .saturating_sub(self.unsent)
            .saturating_add(self.resends)
    }

    /// Returns how many attempts the dependency carried for each operation; none before the first.
    #[must_use]
    pub fn amplification(&self) -> Option<f64> {
        share(self.attempts(), self.operations)
    }

    /// Returns the share of operations sent more than once that succeeded; none before the first.
    #[must_use]
    pub fn recovery_rate(&self) -> Option<f64> {
        share(self.recovered.min(self.resent), self.resent)
    }
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}
