//! Who gets a place while nobody is treated apart: pure.

/// As many places as are counted: 2 097 151. A larger limit, or a longer queue, is that many.
pub const MOST_PLACES: usize = MASK as usize;

const BITS: u32 = 21;
const MASK: u64 = (1 << BITS) - 1;
const QUEUED: u32 = BITS;
const LIMIT: u32 = 2 * BITS;

/// One call in flight, to add or to take away.
pub(super) const ONE_IN_FLIGHT: u64 = 1;

/// One call in the queue, to add or to take away.
pub(super) const ONE_QUEUED: u64 = 1 << QUEUED;

/// How many calls are in flight, how many wait, and the limit: one word, so that all three change at once.
///
/// Its last bit says that tenants have shares: then the word counts, and someone else decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Occupancy(pub(super) u64);

impl Occupancy {
    const SHARED_OUT: u64 = 1 << (3 * BITS);

    pub(super) const fn empty(limit: usize, shared_out: bool) -> Self {
        let shared_out = if shared_out { Self::SHARED_OUT } else { 0 };
        Self(shared_out).with_limit(limit)
    }

    #[inline]
    pub(super) const fn in_flight(self) -> usize {
        (self.0 & MASK) as usize
    }

    #[inline]
    pub(super) const fn queued(self) -> usize {
        (self.0 >> QUEUED & MASK) as usize
    }

    #[inline]
    pub(super) const fn limit(self) -> usize {
        (self.0 >> LIMIT & MASK) as usize
    }

    /// Sets the limit; calls in flight above a smaller one stay.
    pub(super) const fn with_limit(self, limit: usize) -> Self {
        let limit = if limit > MOST_PLACES {
            MASK
        } else {
            limit as u64
        };
        Self(self.0 & !(MASK << LIMIT) | limit << LIMIT)
    }

    /// Tells whether a place changes hands without anybody else being asked.
    #[inline]
    pub(super) const fn is_open(self) -> bool {
        self.queued() == 0 && self.0 & Self::SHARED_OUT == 0
    }

    /// Tells whether a place is free, whoever it is for.
    #[inline]
    pub(super) const fn has_room(self) -> bool {
        self.in_flight() < self.limit()
    }

    /// Takes a place, unless somebody waits for it or none is free.
    #[inline]
    pub(super) const fn entered(self) -> Option<Self> {
        if self.is_open() && self.has_room() {
            Some(Self(self.0 + ONE_IN_FLIGHT))
        } else {
            None
        }
    }

    /// Takes a place in the queue, of which there are so many.
    pub(super) const fn lined_up(self, most_waiting: usize) -> Option<Self> {
        if self.queued() < most_waiting && self.queued() < MOST_PLACES {
            Some(Self(self.0 + ONE_QUEUED))
        } else {
            None
        }
    }

    /// Hands a free place to one of those who wait.
    pub(super) const fn handed_over(self) -> Option<Self> {
        if self.queued() > 0 && self.has_room() {
            Some(Self(self.0 + ONE_IN_FLIGHT - ONE_QUEUED))
        } else {
            None
        }
    }
}
