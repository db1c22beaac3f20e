//! Who may have a token: pure, told the time and the counts.

use super::config::Settings;
use super::error::Cap;
use super::tenant::TENANT_SLOTS;
use crate::clock::Instant;
use std::time::Duration;

/// One token, in the parts that balances count: a ratio is exact to a billionth, and a reserve of *n* tokens a second
/// grows by *n* parts a nanosecond.
pub(super) const TOKEN: u64 = 1_000_000_000;

/// What pays into an account, in parts of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rates {
    /// Per operation.
    pub(super) ratio: u64,
    /// Per nanosecond, which is tokens per second.
    pub(super) min_per_second: u64,
    /// The most that operations can save up.
    burst: u64,
}

impl Rates {
    pub(super) fn new(ratio: u64, min_per_second: u32, burst: u32) -> Self {
        Self {
            ratio,
            min_per_second: min_per_second.into(),
            burst: u64::from(burst) * TOKEN,
        }
    }

    /// One second's worth.
    fn reserve(&self) -> u64 {
        self.min_per_second * TOKEN
    }

    /// What that many operations pay in, and that time.
    fn income(&self, operations: u64, elapsed: Duration) -> Income {
        Income {
            by_operations: u128::from(operations) * u128::from(self.ratio),
            by_time: elapsed.as_nanos() * u128::from(self.min_per_second),
        }
    }
}

/// Where a token came from, and goes back to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Reserve,
    Saved,
}

/// What one dependency, or one tenant, has to spend.
#[derive(Clone, Debug)]
struct Account {
    operations_seen: u64,
    saved: u64,
    reserve: u64,
    refilled: Instant,
}

impl Account {
    fn new(rates: &Rates, now: Instant) -> Self {
        Self {
            operations_seen: 0,
            saved: 0,
            reserve: rates.reserve(),
            refilled: now,
        }
    }

    /// Takes one token. The reserve goes first, because what it doesn't spend in time is lost.
    fn take(&mut self, rates: &Rates, operations: u64, now: Instant) -> Option<Source> {
        self.pay_in(rates, operations, now);
        if let Some(rest) = self.reserve.checked_sub(TOKEN) {
            self.reserve = rest;
            return Some(Source::Reserve);
        }
        self.saved = self.saved.checked_sub(TOKEN)?;
        Some(Source::Saved)
    }

    fn give_back(&mut self, rates: &Rates, source: Source) {
        match source {
            Source::Reserve => self.reserve = (self.reserve + TOKEN).min(rates.reserve()),
            Source::Saved => self.saved = (self.saved + TOKEN).min(rates.burst),
        }
    }

    /// Counts in what happened since the last look.
    fn pay_in(&mut self, rates: &Rates, operations: u64, now: Instant) {
        let fresh = operations.saturating_sub(self.operations_seen);
        self.operations_seen += fresh;
        let earned = fresh.saturating_mul(rates.ratio);
        self.saved = self.saved.saturating_add(earned).min(rates.burst);

        // One second fills the reserve whatever its rate, so longer ones needn't be multiplied.
        let elapsed = now.saturating_duration_since(self.refilled);
        let elapsed = elapsed.min(Duration::from_secs(1)).as_nanos() as u64;
        self.refilled = self.refilled.max(now);
        let refill = elapsed * rates.min_per_second;
        self.reserve = (self.reserve + refill).min(rates.reserve());
    }
}

/// What is known when a resend is asked for.
#[derive(Clone, Debug)]
pub(super) struct Inquiry {
    pub(super) now: Instant,
    /// How many operations there have been.
    pub(super) operations: u64,
    pub(super) operations_in_flight: u64,
    /// The tenant's slot, and how many operations that has had.
    pub(super) tenant: Option<(usize, u64)>,
    pub(super) resends_so_far: u32,
}

/// What a withdrawal took, and from where.
#[derive(Clone, Copy, Debug)]
pub(super) struct Receipt {
    traffic: Option<Source>,
    tenant: Option<(usize, Source)>,
}

/// What was paid in, spent or not, in parts of a token.
#[derive(Clone, Copy, Debug)]
struct Income {
    by_operations: u128,
    by_time: u128,
}

/// All that was ever paid into the account of the traffic.
#[derive(Debug)]
struct Books {
    /// What the rates before these paid in, and what it began with.
    before: Income,
    /// How many operations there had been when these rates began, and when that was.
    operations: u64,
    since: Instant,
}

impl Books {
    fn new(rates: &Rates, now: Instant) -> Self {
        let before = Income {
            by_operations: 0,
            by_time: rates.reserve().into(),
        };
        Self {
            before,
            operations: 0,
            since: now,
        }
    }

    fn income(&self, rates: &Rates, operations: u64, now: Instant) -> Income {
        let elapsed = now.saturating_duration_since(self.since);
        let fresh = rates.income(operations.saturating_sub(self.operations), elapsed);
        Income {
            by_operations: self.before.by_operations + fresh.by_operations,
            by_time: self.before.by_time + fresh.by_time,
        }
    }
}

/// All accounts of one budget, and the resends that are in flight.
#[derive(Debug)]
pub(super) struct Ledger {
    traffic: Option<(Account, Rates, Books)>,
    tenants: Box<[Account]>,
    in_flight: u64,
}

impl Ledger {
    pub(super) fn new(settings: &Settings, now: Instant) -> Self {
        let account = |rates: &Rates| Account::new(rates, now);
        let tenants = settings.per_tenant.as_ref().map(account);
        Self {
            traffic: (settings.traffic.as_ref())
                .map(|rates| (account(rates), rates.clone(), Books::new(rates, now))),
            tenants: tenants.map_or_else(Box::default, |fresh| vec![fresh; TENANT_SLOTS].into()),
            in_flight: 0,
        }
    }

    /// All the tokens ever paid in by the traffic; none where nothing bounds that.
    pub(super) fn allowed(&self, operations: u64, now: Instant) -> Option<u64> {
        let (_, rates, books) = self.traffic.as_ref()?;
        let (income, token) = (books.income(rates, operations, now), u128::from(TOKEN));
        let tokens = income.by_operations / token + income.by_time / token;
        Some(u64::try_from(tokens).unwrap_or(u64::MAX))
    }

    /// The whole tokens that the traffic has; none where nothing bounds that.
    pub(super) fn tokens(&self, operations: u64, now: Instant) -> Option<u64> {
        let (account, rates, _) = self.traffic.as_ref()?;
        let mut account = account.clone();
        account.pay_in(rates, operations, now);
        Some(account.saved / TOKEN + account.reserve / TOKEN)
    }

    /// What the traffic pays in.
    pub(super) fn rates(&self) -> Option<&Rates> {
        self.traffic.as_ref().map(|(_, rates, _)| rates)
    }

    /// Lets the traffic pay by other rates from now on: what is there stays, as far as there is room for it.
    pub(super) fn retune(&mut self, fresh: Rates, operations: u64, now: Instant) {
        let Some((account, rates, books)) = &mut self.traffic else {
            return;
        };
        if *rates == fresh {
            return;
        }
        account.pay_in(rates, operations, now);
        *books = Books {
            before: books.income(rates, operations, now),
            operations,
            since: now,
        };
        *rates = fresh;
        account.pay_in(rates, operations, now);
    }

    /// Takes a token of every account that the resend needs, and a place in flight; or takes nothing.
    pub(super) fn withdraw(
        &mut self,
        settings: &Settings,
        inquiry: &Inquiry,
    ) -> Result<Receipt, Cap> {
        let most = settings.per_operation;
        if most.is_some_and(|most| inquiry.resends_so_far >= most) {
            return Err(Cap::Operation);
        }
        if self.in_flight >= most_in_flight(settings, inquiry.operations_in_flight) {
            return Err(Cap::Concurrency);
        }
        let tenant = self.withdraw_of_tenant(settings, inquiry)?;
        let receipt = Receipt {
            traffic: None,
            tenant,
        };
        let traffic = match &mut self.traffic {
            Some((account, rates, _)) => {
                let taken = account.take(rates, inquiry.operations, inquiry.now);
                if taken.is_none() {
                    self.give_back_tokens(settings, receipt);
                    return Err(Cap::Traffic);
                }
                taken
            }
            None => None,
        };
        self.in_flight += 1;
        Ok(Receipt { traffic, tenant })
    }

    fn withdraw_of_tenant(
        &mut self,
        settings: &Settings,
        inquiry: &Inquiry,
    ) -> Result<Option<(usize, Source)>, Cap> {
        let (Some(rates), Some((slot, operations))) = (&settings.per_tenant, inquiry.tenant) else {
            return Ok(None);
        };
        let taken = self.tenants[slot].take(rates, operations, inquiry.now);
        taken.map_or(Err(Cap::Tenant), |source| Ok(Some((slot, source))))
    }

    /// Undoes a withdrawal that was not spent.
    pub(super) fn give_back(&mut self, settings: &Settings, receipt: Receipt) {
        self.give_back_tokens(settings, receipt);
        self.leave();
    }

    /// Ends a resend's flight.
    pub(super) fn leave(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    fn give_back_tokens(&mut self, settings: &Settings, receipt: Receipt) {
        if let (Some((account, rates, _)), Some(source)) = (&mut self.traffic, receipt.traffic) {
            account.give_back(rates, source);
        }
        if let (Some(rates), Some((slot, source))) = (&settings.per_tenant, receipt.tenant) {
            self.tenants[slot].give_back(rates, source);
        }
    }
}

fn most_in_flight(settings: &Settings, operations_in_flight: u64) -> u64 {
    let fixed = settings.max_concurrent.map_or(u64::MAX, u64::from);
    let share = settings.concurrent.as_ref().map_or(u64::MAX, |share| {
        let share_of_operations = operations_in_flight.saturating_mul(share.parts) / TOKEN;
        share_of_operations.max(share.min.into())
    });
    fixed.min(share)
}
