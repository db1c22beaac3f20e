use super::config::{BudgetBuilder, Settings};
use super::error::Exhausted;
use super::guard::{Deposit, Withdrawal};
use super::state::{Inquiry, Ledger};
use super::tenant::{TENANT_SLOTS, Tenant};
use super::traffic::Traffic;
use crate::clock::{self, Instant};
use crate::shard::{Line, Tally};
use crate::sync::{AtomicU64, Mutex, MutexGuard, Ordering::Relaxed};
use std::fmt;
use std::sync::{Arc, PoisonError};

/// What pays for the resends to one dependency; clones share it.
///
/// Make one per dependency, outside of any layer's `layer()`, and give a clone to each layer that resends. The
/// [module](super) says what it bounds.
///
/// ```
/// use mamparo_core::Budget;
/// let for_retries = Budget::default();
/// let for_hedges = for_retries.clone();
/// let operation = for_retries.deposit(None);
/// assert_eq!(for_hedges.consumed(), 0);
/// ```
#[derive(Clone)]
pub struct Budget {
    shared: Arc<Shared>,
}

impl Budget {
    /// Starts from the defaults.
    pub fn builder() -> BudgetBuilder {
        BudgetBuilder::default()
    }

    /// Makes a budget that pays for every resend: only where something else bounds them.
    ///
    /// ```
    /// use mamparo_core::{Budget, clock};
    /// let budget = Budget::unlimited();
    /// assert!((0..1_000).all(|_| budget.withdraw(clock::now(), None, 0).is_ok()));
    /// ```
    #[must_use]
    pub fn unlimited() -> Self {
        Self::new(Settings::default())
    }

    pub(super) fn new(settings: Settings) -> Self {
        let now = clock::now();
        Self {
            shared: Arc::new(Shared {
                tally: Tally::new(COUNTERS),
                tenants: settings
                    .per_tenant
                    .as_ref()
                    .map(|_| Tally::new(TENANT_SLOTS)),
                resends: Box::new(Line(Resends {
                    ledger: Mutex::new(Ledger::new(&settings, now)),
                    consumed: AtomicU64::new(0),
                })),
                settings,
            }),
        }
    }

    /// Pays in what one operation pays, once per operation, whatever comes of it; keep the result until it ends.
    ///
    /// No lock, no allocation, and no memory that other threads write at the same time.
    #[inline]
    pub fn deposit(&self, tenant: Option<Tenant>) -> Deposit {
        let shared = &self.shared;
        shared.tally.increment(OPERATIONS);
        if let (Some(tenants), Some(tenant)) = (&shared.tenants, tenant) {
            tenants.increment(tenant.slot());
        }
        let counted = shared.settings.concurrent.as_ref().map(|_| {
            shared.tally.increment(OPERATIONS_IN_FLIGHT);
            Arc::clone(shared)
        });
        Deposit::new(counted)
    }

    /// Takes the token for one resend, before its backoff. `resends_so_far` are those of this operation.
    ///
    /// `now` is read from [`clock::now`]; time that goes backwards adds nothing.
    ///
    /// # Errors
    ///
    /// [`Exhausted`] when a cap refuses; it says which one, and nothing was taken.
    pub fn withdraw(
        &self,
        now: Instant,
        tenant: Option<Tenant>,
        resends_so_far: u32,
    ) -> Result<Withdrawal, Exhausted> {
        let shared = &self.shared;
        let mut ledger = shared.ledger();
        // Counted under the lock: one withdrawal then never sees less than an earlier one did.
        let inquiry = Inquiry {
            now,
            operations: shared.tally.sum(OPERATIONS),
            operations_in_flight: shared.operations_in_flight(),
            tenant: shared.look_up(tenant),
            resends_so_far,
        };
        let receipt = ledger.withdraw(&shared.settings, &inquiry);
        drop(ledger);
        receipt
            .map(|receipt| Withdrawal::new(Arc::clone(shared), receipt, resends_so_far == 0))
            .map_err(|cap| Exhausted { cap })
    }

    /// Returns the tokens paid in so far, by operations and by time, whether or not they could be saved.
    ///
    /// Budget use is [`consumed`](Self::consumed) divided by it. An [`unlimited`](Self::unlimited) budget says `u64::MAX`.
    ///
    /// ```
    /// use mamparo_core::Budget;
    /// # fn main() -> Result<(), mamparo_core::InvalidSetting> {
    /// let budget = Budget::builder().ratio(0.1).min_per_second(0).build()?;
    /// for _ in 0..30 {
    ///     drop(budget.deposit(None));
    /// }
    /// assert_eq!(budget.allowed(mamparo_core::clock::now()), 3);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn allowed(&self, now: Instant) -> u64 {
        let ledger = self.shared.ledger();
        let allowed = ledger.allowed(self.shared.tally.sum(OPERATIONS), now);
        allowed.unwrap_or(u64::MAX)
    }

    /// Goes on with the share of operations, the reserve and the burst of another budget; its own tokens stay, and so do
    /// resends in flight. Caps on concurrency, operations and tenants stay too.
    ///
    /// ```
    /// use mamparo_core::{Budget, clock};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let budget = Budget::builder().ratio(0.0).min_per_second(2).build()?;
    /// drop(budget.withdraw(clock::now(), None, 0)?.spend());
    /// budget.retune(&Budget::builder().ratio(0.5).min_per_second(2).build()?);
    /// assert!(budget.withdraw(clock::now(), None, 0).is_ok()); // the other of its two tokens
    /// assert_eq!(budget.consumed(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn retune(&self, like: &Self) {
        let Some(rates) = like.shared.ledger().rates().cloned() else {
            return;
        };
        let operations = self.shared.tally.sum(OPERATIONS);
        let mut ledger = self.shared.ledger();
        ledger.retune(rates, operations, clock::now());
    }

    /// Returns the tokens consumed so far: the number of resends that were sent and have their answer.
    #[must_use]
    pub fn consumed(&self) -> u64 {
        self.shared.resends.0.consumed.load(Relaxed)
    }

    /// Returns how many whole tokens there are to spend; none where nothing bounds them.
    ///
    /// ```
    /// use mamparo_core::{Budget, clock};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let budget = Budget::builder().ratio(0.0).min_per_second(3).build()?;
    /// let in_flight = budget.withdraw(clock::now(), None, 0)?.spend();
    /// assert_eq!(budget.tokens(clock::now()), Some(2));
    /// assert_eq!(Budget::unlimited().tokens(clock::now()), None);
    /// # drop(in_flight);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn tokens(&self, now: Instant) -> Option<u64> {
        let operations = self.shared.tally.sum(OPERATIONS);
        self.shared.ledger().tokens(operations, now)
    }

    /// Returns what has been counted so far of the operations that paid in.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        let sum = |counter| self.shared.tally.sum(counter);
        Traffic {
            operations: sum(OPERATIONS),
            unsent: sum(UNSENT),
            // As in flight: an end may be seen without its start.
            resent: sum(RESENT).cast_signed().max(0).cast_unsigned(),
            recovered: sum(RECOVERED),
            resends: self.consumed(),
        }
    }

    /// Counts an operation that succeeded, and was sent more than once.
    #[cold]
    pub fn note_recovered(&self) {
        self.shared.tally.increment(RECOVERED);
    }

    /// Counts an operation of which nothing was sent, since its only attempt was refused on our side.
    #[cold]
    pub fn note_unsent(&self) {
        self.shared.tally.increment(UNSENT);
    }
}

impl Default for Budget {
    /// 20 % of operations plus 10 a second, 100 tokens saved at most.
    fn default() -> Self {
        Self::new(BudgetBuilder::default().settings())
    }
}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budget")
            .field("settings", &self.shared.settings)
            .field("consumed", &self.consumed())
            .finish_non_exhaustive()
    }
}

const OPERATIONS: usize = 0;
const OPERATIONS_IN_FLIGHT: usize = 1;
const UNSENT: usize = 2;
const RESENT: usize = 3;
const RECOVERED: usize = 4;
const COUNTERS: usize = 5;

/// What the clones and guards of one budget share.
pub(super) struct Shared {
    settings: Settings,
    tally: Tally,
    tenants: Option<Tally>,
    /// On cache lines of its own, because every operation reads what is beside it.
    resends: Box<Line<Resends>>,
}

/// What resends write.
struct Resends {
    ledger: Mutex<Ledger>,
    consumed: AtomicU64,
}

impl Shared {
    pub(super) fn consume(&self) {
        self.resends.0.consumed.fetch_add(1, Relaxed);
    }

    /// An operation is sent again for the first time.
    pub(super) fn resent(&self) {
        self.tally.increment(RESENT);
    }

    /// It was not, after all.
    pub(super) fn not_resent(&self) {
        self.tally.decrement(RESENT);
    }

    pub(super) fn with_ledger(&self, change: impl FnOnce(&mut Ledger, &Settings)) {
        change(&mut self.ledger(), &self.settings);
    }

    pub(super) fn operation_ended(&self) {
        self.tally.decrement(OPERATIONS_IN_FLIGHT);
    }

    /// No code panics while it holds the lock; were it poisoned all the same, its numbers would still be usable.
    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        let ledger = self.resends.0.ledger.lock();
        ledger.unwrap_or_else(PoisonError::into_inner)
    }

    /// A sum may see the end of an operation whose start it missed; that is none in flight, not billions.
    fn operations_in_flight(&self) -> u64 {
        let sum = self.tally.sum(OPERATIONS_IN_FLIGHT).cast_signed();
        sum.max(0).cast_unsigned()
    }

    fn look_up(&self, tenant: Option<Tenant>) -> Option<(usize, u64)> {
        let slot = tenant?.slot();
        let tally = self.tenants.as_ref()?;
        Some((slot, tally.sum(slot)))
    }
}
