//! The one place that reads a clock.
//!
//! Everything that waits or measures uses the monotonic clock through [`now`], so that tokio's paused
//! time turns the whole of mamparo together. The wall clock is read only to interpret an HTTP date or an
//! absolute deadline, through [`WallClock`].

use std::fmt::Debug;
use std::time::{Duration, SystemTime};

pub use tokio::time::Instant;

/// As far ahead as an instant is ever placed: 30 years, as tokio's own timers do.
pub const FAR_FUTURE: Duration = Duration::from_secs(86_400 * 365 * 30);

/// Reads the monotonic clock.
///
/// ```
/// let earlier = mamparo_core::clock::now();
/// assert!(mamparo_core::clock::now() >= earlier);
/// ```
#[must_use]
#[inline]
#[expect(
    clippy::disallowed_methods,
    reason = "this is the place that asks the clock"
)]
pub fn now() -> Instant {
    Instant::now()
}

/// Adds a duration to an instant; never overflows, stops at [`FAR_FUTURE`] from that instant.
///
/// ```
/// use mamparo_core::clock;
/// use std::time::Duration;
/// let start = clock::now();
/// assert_eq!(clock::later(start, Duration::MAX), start + clock::FAR_FUTURE);
/// ```
#[must_use]
#[inline]
pub fn later(instant: Instant, by: Duration) -> Instant {
    instant.checked_add(by.min(FAR_FUTURE)).unwrap_or(instant)
}

/// Tells the time of day, for HTTP dates and absolute deadlines only.
///
/// A trait so that a test can set the clock, and so that no other code reads it.
pub trait WallClock: Debug + Send + Sync + 'static {
    /// Returns the time of day, UTC.
    fn now(&self) -> SystemTime;
}

/// The machine's own wall clock.
///
/// ```
/// use mamparo_core::clock::{SystemClock, WallClock};
/// assert!(SystemClock.now() > std::time::SystemTime::UNIX_EPOCH);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl WallClock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the place that asks the wall clock"
    )]
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }
}
