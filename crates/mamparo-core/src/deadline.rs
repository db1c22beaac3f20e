//! The instant at which an operation ends, whatever happens inside.

use std::time::Duration;

use crate::InvalidSetting;
use crate::clock::{self, Instant};

/// An instant on the monotonic clock after which nobody waits for the answer.
///
/// A deadline bounds a whole operation; a timeout bounds one attempt or one phase, and is a plain
/// [`Duration`]. Of two deadlines the smaller binds: use [`Ord::min`].
///
/// ```
/// use mamparo_core::{Deadline, clock};
/// use std::time::Duration;
///
/// let now = clock::now();
/// let own = Deadline::after(now, Duration::from_secs(2));
/// let inherited = Deadline::after(now, Duration::from_millis(300));
/// assert_eq!(own.min(inherited).remaining(now), Duration::from_millis(300));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Deadline(Instant);

impl Deadline {
    /// Places the deadline at an instant.
    #[must_use]
    pub const fn at(instant: Instant) -> Self {
        Self(instant)
    }

    /// Places the deadline a duration after `now`; never overflows, see [`clock::FAR_FUTURE`].
    #[must_use]
    #[inline]
    pub fn after(now: Instant, duration: Duration) -> Self {
        Self(clock::later(now, duration))
    }

    /// Returns the instant.
    #[must_use]
    pub const fn instant(self) -> Instant {
        self.0
    }

    /// Returns how long there is from `now` until the deadline: zero once it has passed.
    #[must_use]
    #[inline]
    pub fn remaining(self, now: Instant) -> Duration {
        self.0.saturating_duration_since(now)
    }

    /// Tells whether the deadline has passed at `now`.
    #[must_use]
    #[inline]
    pub fn has_passed(self, now: Instant) -> bool {
        now >= self.0
    }

    /// Returns how late `now` is: zero before the deadline.
    #[must_use]
    pub fn lateness(self, now: Instant) -> Duration {
        now.saturating_duration_since(self.0)
    }

    /// Returns an earlier deadline, that leaves `reserve` to deliver the answer.
    #[must_use]
    #[inline]
    pub fn less(self, reserve: Duration) -> Self {
        Self(self.0.checked_sub(reserve).unwrap_or(self.0))
    }
}

/// Time kept back from the deadline to deliver the answer: a share of what remains, up to a most.
///
/// The default is 5 %, at most 50 ms.
///
/// ```
/// use mamparo_core::Reserve;
/// use std::time::Duration;
///
/// let reserve = Reserve::default();
/// assert_eq!(reserve.of(Duration::from_millis(200)), Duration::from_millis(10));
/// assert_eq!(reserve.of(Duration::from_secs(10)), Duration::from_millis(50));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reserve {
    percent: u8,
    most: Duration,
}

impl Reserve {
    /// Keeps nothing back.
    pub const NONE: Self = Self {
        percent: 0,
        most: Duration::ZERO,
    };

    /// Keeps back `percent` of what remains, at most `most`.
    ///
    /// # Errors
    ///
    /// Refuses 100 percent or more: nothing would be left to call the dependency with.
    pub fn new(percent: u8, most: Duration) -> Result<Self, InvalidSetting> {
        if percent >= 100 {
            return Err(InvalidSetting::new(
                "reserve",
                format_args!("{percent} %"),
                "must be less than 100 %: the reserve is kept back from the deadline, so something must be left",
            ));
        }
        Ok(Self { percent, most })
    }

    /// Keeps back a fixed time, however much remains.
    #[must_use]
    pub const fn fixed(time: Duration) -> Self {
        Self {
            percent: 100,
            most: time,
        }
    }

    /// Returns the reserve for an operation that has `remaining` to go.
    #[must_use]
    #[inline]
    pub fn of(self, remaining: Duration) -> Duration {
        let nanos = u64::try_from(remaining.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(nanos / 100 * u64::from(self.percent)).min(self.most)
    }
}

impl Default for Reserve {
    fn default() -> Self {
        Self {
            percent: 5,
            most: Duration::from_millis(50),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_longest_duration_does_not_overflow() {
        let now = clock::now();
        let deadline = Deadline::after(now, Duration::MAX);
        assert_eq!(deadline.remaining(now), clock::FAR_FUTURE);
        assert!(!deadline.has_passed(now));
    }

    #[test]
    fn a_passed_deadline_has_nothing_left_and_says_how_late_it_is() {
        let now = clock::now();
        let deadline = Deadline::at(now);
        let later = now + Duration::from_millis(7);
        assert!(deadline.has_passed(now), "the instant itself is too late");
        assert_eq!(deadline.remaining(later), Duration::ZERO);
        assert_eq!(deadline.lateness(later), Duration::from_millis(7));
    }

    #[test]
    fn a_reserve_of_everything_is_refused_by_name() {
        let error = Reserve::new(100, Duration::from_secs(1)).unwrap_err();
        assert_eq!((error.setting(), error.value()), ("reserve", "100 %"));
    }

    proptest! {
        #[test]
        fn the_reserve_is_never_more_than_its_share_or_its_most(
            nanos in any::<u64>(), percent in 0u8..100, most in any::<u32>()
        ) {
            let remaining = Duration::from_nanos(nanos);
            let most = Duration::from_millis(u64::from(most));
            let reserve = Reserve::new(percent, most).unwrap().of(remaining);
            prop_assert!(reserve <= most);
            prop_assert!(reserve.as_nanos() * 100 <= u128::from(nanos) * u128::from(percent));
        }
    }
}
