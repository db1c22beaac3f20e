//! Shares of a bulkhead for those on whose behalf calls are made.

use std::fmt;

use mamparo_core::{CallContext, InvalidSetting, Tenant};

/// As many tenants as can have a share of their own.
pub const MOST_PARTITIONS: usize = 64;

/// What a tenant may use of a bulkhead: parts of its limit, and of its queue, in percent.
///
/// ```
/// use mamparo::bulkhead::Share;
/// let share = Share::percent(25, 50)?;
/// assert_eq!((share.guaranteed(), share.burst()), (25, 50));
/// assert!(Share::percent(60, 50).is_err());
/// # Ok::<(), mamparo_core::InvalidSetting>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    guaranteed: u8,
    burst: u8,
}

impl Share {
    /// No place is kept free for it, and it may use them all.
    pub const REST: Self = Self {
        guaranteed: 0,
        burst: 100,
    };

    /// Keeps `guaranteed` percent free for the tenant whatever others do, and lets it use `burst` percent at most.
    ///
    /// # Errors
    ///
    /// Refuses a burst of 0, of more than 100, or smaller than what is guaranteed.
    pub fn percent(guaranteed: u8, burst: u8) -> Result<Self, InvalidSetting> {
        if burst == 0 || burst > 100 || guaranteed > burst {
            return Err(InvalidSetting::new(
                "share",
                format_args!("{guaranteed} % to {burst} %"),
                "must guarantee no more than the burst, which must be 1 % to 100 %",
            ));
        }
        Ok(Self { guaranteed, burst })
    }

    /// Returns the percentage that is kept free for it.
    #[must_use]
    pub const fn guaranteed(self) -> u8 {
        self.guaranteed
    }

    /// Returns the percentage that it may use.
    #[must_use]
    pub const fn burst(self) -> u8 {
        self.burst
    }

    /// Rounded down, so that all guarantees together are never more than there is.
    const fn guaranteed_of(self, capacity: usize) -> usize {
        capacity * self.guaranteed as usize / 100
    }

    /// Rounded up: whoever has a share can use a place.
    const fn burst_of(self, capacity: usize) -> usize {
        (capacity * self.burst as usize).div_ceil(100)
    }
}

/// Which tenant has which share.
///
/// A tenant that is not named belongs to *the others*: they are guaranteed their share together, and each of them may
/// burst to it alone, so that one of a thousand unnamed tenants can't take all. Their names are kept as hashes in
/// [`TENANT_SLOTS`](mamparo_core::budget::TENANT_SLOTS) slots; tenants that fall into one slot are bounded together.
///
/// ```
/// use mamparo::bulkhead::{Partitions, Share};
/// use mamparo_core::Tenant;
///
/// let partitions = Partitions::builder()
///     .tenant(Tenant::of("acme"), Share::percent(40, 80)?)
///     .others(Share::percent(20, 30)?)
///     .build()?;
/// # let _ = partitions;
/// # Ok::<(), mamparo_core::InvalidSetting>(())
/// ```
#[derive(Clone, Debug)]
pub struct Partitions {
    settings: PartitionsBuilder,
}

/// Settings of [`Partitions`].
#[derive(Clone, Debug)]
pub struct PartitionsBuilder {
    named: Vec<(Tenant, Share)>,
    others: Share,
}

impl Partitions {
    /// Starts with no named tenant: the others may use everything.
    #[must_use]
    pub const fn builder() -> PartitionsBuilder {
        PartitionsBuilder {
            named: Vec::new(),
            others: Share::REST,
        }
    }

    /// Finds a tenant's seat; who is unknown is one more of the others.
    pub(super) fn seat(&self, tenant: Option<Tenant>) -> Seat {
        let named = &self.settings.named;
        let group = tenant.and_then(|tenant| named.iter().position(|(name, _)| *name == tenant));
        Seat::new(
            group.unwrap_or(named.len()),
            tenant.map_or(NOBODY, Tenant::slot),
        )
    }

    fn shares(&self) -> impl Iterator<Item = Share> {
        let named = self.settings.named.iter().map(|(_, share)| *share);
        // Together the others may use all; what each of them may is looked up by its slot.
        let others = Share {
            burst: 100,
            ..self.settings.others
        };
        named.chain([others])
    }
}

impl PartitionsBuilder {
    /// Gives a tenant a share of its own.
    #[must_use]
    pub fn tenant(mut self, tenant: Tenant, share: Share) -> Self {
        self.named.push((tenant, share));
        self
    }

    /// Gives a share to all others; [`Share::REST`] by default.
    #[must_use]
    pub const fn others(mut self, share: Share) -> Self {
        self.others = share;
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// Refuses more than [`MOST_PARTITIONS`] tenants, one that is named twice, and guarantees of more than 100 %.
    pub fn build(self) -> Result<Partitions, InvalidSetting> {
        let many = self.named.len();
        if many > MOST_PARTITIONS {
            return Err(InvalidSetting::new(
                "partitions",
                many,
                "must be 64 at most",
            ));
        }
        for (at, (tenant, _)) in self.named.iter().enumerate() {
            if self.named[..at].iter().any(|(other, _)| other == tenant) {
                return Err(InvalidSetting::new(
                    "partitions",
                    format_args!("{tenant:?}"),
                    "must name a tenant once",
                ));
            }
        }
        let shares = self.named.iter().map(|(_, share)| share);
        let guaranteed = shares
            .chain([&self.others])
            .map(|share| u32::from(share.guaranteed));
        let sum: u32 = guaranteed.sum();
        if sum > 100 {
            return Err(InvalidSetting::new(
                "partitions",
                format_args!("{sum} % guaranteed"),
                "must guarantee 100 % at most, all together",
            ));
        }
        Ok(Partitions { settings: self })
    }
}

/// Where a call's places are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Seat(u32);

impl Seat {
    const SLOT_BITS: u32 = 16;

    const fn new(group: usize, slot: usize) -> Self {
        Self((group << Self::SLOT_BITS | slot) as u32)
    }

    const fn group(self) -> usize {
        (self.0 >> Self::SLOT_BITS) as usize
    }

    const fn slot(self) -> usize {
        (self.0 & ((1 << Self::SLOT_BITS) - 1)) as usize
    }
}

/// The slot of calls on nobody's behalf, after those of tenants.
const NOBODY: usize = mamparo_core::budget::TENANT_SLOTS;

/// Who uses how much of one capacity: the places, or the queue.
#[derive(Debug)]
pub(super) struct Ledger {
    total: usize,
    groups: Box<[usize]>,
    slots: Box<[u32]>,
}

impl Ledger {
    pub(super) fn new(partitions: &Partitions) -> Self {
        Self {
            total: 0,
            groups: vec![0; partitions.shares().count()].into(),
            slots: vec![0; NOBODY + 1].into(),
        }
    }

    /// Tells whether one more may be counted there: within its burst, and outside of what is kept free for others.
    pub(super) fn fits(&self, partitions: &Partitions, capacity: usize, seat: Seat) -> bool {
        let group = seat.group();
        let each = partitions.settings.others.burst_of(capacity);
        let is_other = group + 1 == self.groups.len();
        if self.total >= capacity || is_other && self.of_slot(seat) >= each {
            return false;
        }
        let mut kept_free = 0;
        for (at, (share, used)) in partitions.shares().zip(&self.groups).enumerate() {
            let guaranteed = share.guaranteed_of(capacity);
            if at != group {
                kept_free += guaranteed.saturating_sub(*used);
            } else if *used < guaranteed {
                return true;
            } else if *used >= share.burst_of(capacity) {
                return false;
            }
        }
        self.total + kept_free < capacity
    }

    pub(super) fn enter(&mut self, seat: Seat) {
        self.total += 1;
        self.groups[seat.group()] += 1;
        self.slots[seat.slot()] += 1;
    }

    pub(super) fn leave(&mut self, seat: Seat) {
        self.total -= 1;
        self.groups[seat.group()] -= 1;
        self.slots[seat.slot()] -= 1;
    }

    /// Counts the tenant's own: a named one's group, another one's slot.
    pub(super) fn used_by(&self, seat: Seat) -> usize {
        let group = seat.group();
        if group + 1 == self.groups.len() {
            self.of_slot(seat)
        } else {
            self.groups[group]
        }
    }

    fn of_slot(&self, seat: Seat) -> usize {
        self.slots[seat.slot()] as usize
    }
}

/// Says on whose behalf a request is made.
pub trait TenantOf<Req>: Clone + Send + Sync + 'static {
    /// Returns the tenant, if it is known.
    fn tenant(&self, request: &Req) -> Option<Tenant>;
}

/// The tenant that the call's context names.
#[derive(Clone, Copy, Debug, Default)]
pub struct ByContext;

/// The tenant that a function reads from the request.
#[derive(Clone, Copy)]
pub struct ByRequest<F>(pub(super) F);

impl<Req> TenantOf<Req> for ByContext {
    #[inline]
    fn tenant(&self, _: &Req) -> Option<Tenant> {
        CallContext::current().tenant()
    }
}

impl<Req, F> TenantOf<Req> for ByRequest<F>
where
    F: Fn(&Req) -> Option<Tenant> + Clone + Send + Sync + 'static,
{
    #[inline]
    fn tenant(&self, request: &Req) -> Option<Tenant> {
        (self.0)(request)
    }
}

impl<F> fmt::Debug for ByRequest<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ByRequest").finish_non_exhaustive()
    }
}
