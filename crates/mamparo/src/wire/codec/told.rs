//! What a header told: time that remains, a lead over the wall clock, or nothing that can be read.

use std::error::Error;
use std::fmt::{self, Display};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How much time a caller leaves; ordered, the shortest first.
///
/// ```
/// use mamparo::wire::codec::Remaining;
/// use std::time::Duration;
/// assert!(Remaining::Expired < Remaining::For(Duration::from_nanos(1)));
/// assert!(Remaining::For(Duration::MAX) < Remaining::Infinite);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Remaining {
    /// The deadline has passed: there is nothing left to work with.
    Expired,
    /// This much remains, and never zero.
    For(Duration),
    /// The caller says that it sets no limit.
    Infinite,
}

impl Remaining {
    /// Returns how long it is: zero when the deadline has passed, none when there is no limit.
    #[must_use]
    #[inline]
    pub const fn duration(self) -> Option<Duration> {
        match self {
            Self::Expired => Some(Duration::ZERO),
            Self::For(duration) => Some(duration),
            Self::Infinite => None,
        }
    }
}

/// A deadline header that cannot be read: what its form asks for.
///
/// The value itself is not kept: it is as long and as hostile as its sender likes.
///
/// ```
/// use mamparo::wire::codec::DeadlineHeader;
/// use std::time::SystemTime;
/// let error = DeadlineHeader::grpc_timeout()
///     .read(&http::HeaderValue::from_static("+5S"), SystemTime::UNIX_EPOCH)
///     .unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "deadline header is malformed: send 1 to 8 digits and a unit (H, M, S, m, u or n)"
/// );
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed {
    expected: &'static str,
}

impl Malformed {
    pub(super) const fn expected(expected: &'static str) -> Self {
        Self { expected }
    }
}

impl Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "deadline header is malformed: send {}", self.expected)
    }
}

impl Error for Malformed {}

/// What one value told, before relative and absolute forms are weighed against each other.
#[derive(Clone, Copy, Debug)]
pub(super) enum Told {
    Relative(Remaining),
    Absolute(Lead),
}

impl Told {
    pub(super) fn remaining(self) -> Remaining {
        match self {
            Self::Relative(remaining) => remaining,
            Self::Absolute(lead) => lead.remaining(),
        }
    }
}

/// How far an absolute deadline lies ahead of the wall clock, in nanoseconds; negative when it has passed.
///
/// Every deadline and every clock fits: 128 bits hold nanoseconds for far longer than a `SystemTime` does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Lead(i128);

impl Lead {
    pub(super) fn of(deadline: i128, wall: SystemTime) -> Self {
        Self(deadline - nanos_since_epoch(wall))
    }

    pub(super) fn remaining(self) -> Remaining {
        match duration(self.0) {
            Duration::ZERO => Remaining::Expired,
            ahead => Remaining::For(ahead),
        }
    }

    pub(super) fn late(self) -> Duration {
        duration(-self.0)
    }
}

fn duration(nanos: i128) -> Duration {
    let longest = Duration::MAX.as_nanos();
    Duration::from_nanos_u128(u128::try_from(nanos).unwrap_or(0).min(longest))
}

/// Nanoseconds since the Unix epoch; negative for a clock that is set before it.
pub(super) fn nanos_since_epoch(wall: SystemTime) -> i128 {
    match wall.duration_since(UNIX_EPOCH) {
        Ok(since) => since.as_nanos().cast_signed(),
        Err(before) => -before.duration().as_nanos().cast_signed(),
    }
}
