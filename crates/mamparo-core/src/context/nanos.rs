//! A duration in half the space.

use std::time::Duration;

/// A duration of up to 584 years.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Nanos(u64);

impl Nanos {
    pub(super) const ZERO: Self = Self(0);

    #[inline]
    pub(super) const fn of(duration: Duration) -> Self {
        let nanos = duration.as_nanos();
        if nanos > u64::MAX as u128 {
            return Self(u64::MAX);
        }
        Self(nanos as u64)
    }

    #[inline]
    pub(super) const fn duration(self) -> Duration {
        Duration::from_nanos(self.0)
    }
}
