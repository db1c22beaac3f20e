//! The generic cell rate algorithm (ITU-T I.371, annex A; as virtual scheduling), in whole nanoseconds.
//!
//! All that is kept of the past is one instant: when the whole burst will be there again. A call moves it on by what
//! the call costs, and may not move it further ahead of now than a whole burst takes.

use std::time::Duration;

/// The shape of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gcra {
    /// What a cost of one takes, rounded up: never more than the rate.
    interval: u64,
    /// What the whole burst takes.
    tolerance: u64,
    burst: u32,
}

/// What becomes of a call, by one limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// It passes; the burst is whole again then.
    Pass { full_at: u64 },
    /// It would pass after so many nanoseconds.
    NotYet { wait: u64 },
    /// It would never pass: it costs more than a burst.
    Never,
}

impl Gcra {
    /// A limit of `count` per `period`, and a burst; none of them is zero.
    pub(super) fn new(count: u32, period: Duration, burst: u32) -> Self {
        let interval = period.as_nanos().div_ceil(u128::from(count.max(1)));
        let interval = u64::try_from(interval).unwrap_or(u64::MAX / 2).max(1);
        // What would take three centuries is as good as endless, and leaves room so that no instant saturates.
        let most = u32::try_from(u64::MAX / 2 / interval).unwrap_or(u32::MAX);
        let burst = burst.min(most.max(1));
        Self {
            interval,
            tolerance: interval * u64::from(burst),
            burst,
        }
    }

    /// Tells whether a burst covers that cost.
    #[inline]
    pub(super) const fn fits(self, cost: u32) -> bool {
        cost <= self.burst
    }

    /// Says what becomes of a call that comes `now`, where the burst would be whole again at `full_at`.
    #[inline]
    pub(super) fn decide(self, full_at: u64, now: u64, cost: u32) -> Decision {
        if !self.fits(cost) {
            return Decision::Never;
        }
        let (full_at, earliest) = self.after(full_at, now, u64::from(cost));
        if earliest <= now {
            Decision::Pass { full_at }
        } else {
            Decision::NotYet {
                wait: earliest - now,
            }
        }
    }

    /// The part of one replica among several: of the rate, and of the burst.
    pub(super) fn share(self, replicas: u32) -> Self {
        let interval = self.interval.saturating_mul(u64::from(replicas));
        let burst = (self.burst / replicas.max(1)).max(1);
        Self {
            interval,
            tolerance: interval.saturating_mul(u64::from(burst)),
            burst,
        }
    }

    /// Returns how much may pass at once.
    pub(super) const fn burst(self) -> u32 {
        self.burst
    }

    /// Returns what a cost that fits takes, in nanoseconds of the rate.
    pub(super) const fn charge(self, cost: u32) -> u64 {
        self.interval.saturating_mul(cost as u64)
    }

    /// Returns what the tokens take here that take so long at another rate.
    pub(super) fn converted(self, from: Self, nanos: u64) -> u64 {
        let here = u128::from(nanos) * u128::from(self.interval) / u128::from(from.interval);
        u64::try_from(here).unwrap_or(u64::MAX / 2)
    }

    /// Returns how long it takes until so much more has passed, of which no part is more than a burst.
    pub(super) fn wait(self, full_at: u64, now: u64, cost: u64) -> u64 {
        self.after(full_at, now, cost).1.saturating_sub(now)
    }

    /// Returns how much may pass at once.
    pub(super) fn room(self, full_at: u64, now: u64) -> u32 {
        let free = self.tolerance.saturating_sub(full_at.saturating_sub(now));
        u32::try_from(free / self.interval).unwrap_or(u32::MAX)
    }

    /// Returns how much would pass now, and after how many nanoseconds one more; never where the burst is whole.
    pub(super) const fn left(self, full_at: u64, now: u64) -> (u64, Option<u64>) {
        let debt = full_at.saturating_sub(now);
        if debt == 0 {
            return (self.burst as u64, None);
        }
        let left = self.tolerance.saturating_sub(debt) / self.interval;
        // The debt with which one more passes.
        let more = self.tolerance - (left + 1) * self.interval;
        (left, Some(debt - more))
    }

    /// The least `full_at` with which nothing passes for so long, and then one call after the other.
    pub(super) const fn closed(self, now: u64, wait: u64) -> u64 {
        let all = now.saturating_add(wait).saturating_add(self.tolerance);
        all.saturating_sub(self.interval)
    }

    /// When the burst is whole again after that cost, and when the cost can be taken.
    #[inline]
    fn after(self, full_at: u64, now: u64, cost: u64) -> (u64, u64) {
        let charge = self.interval.saturating_mul(cost);
        let full_at = full_at.max(now).saturating_add(charge);
        (full_at, full_at.saturating_sub(self.tolerance))
    }
}
