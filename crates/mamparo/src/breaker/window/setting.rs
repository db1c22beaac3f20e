//! Which calls a window holds.

use std::time::Duration;

use mamparo_core::InvalidSetting;

/// As many calls as a count window can hold: it must fit into a keyed breaker's kilobyte.
const MAX_CALLS: u32 = 512;

/// A stretch of time this short says nothing of a dependency.
const SHORTEST: Duration = Duration::from_millis(100);

/// As long as a time window can be.
const LONGEST: Duration = Duration::from_secs(3600);

/// The calls over which a breaker takes its counts and rates.
///
/// ```
/// use mamparo::breaker::{BreakerPolicy, Window};
///
/// let last_hundred = BreakerPolicy::builder().failure_rate(0.5).window(Window::calls(100));
/// assert!(last_hundred.build().is_ok());
/// let none = BreakerPolicy::builder().failure_rate(0.5).window(Window::calls(0));
/// assert_eq!(none.build().unwrap_err().setting(), "breaker.window");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Window {
    /// The calls that ended within that time, to a tenth of it.
    Time(Duration),
    /// That many calls, the last that ended.
    Calls(u32),
}

impl Window {
    /// The calls of the last 100 ms to an hour. It slides in steps of a tenth.
    #[must_use]
    pub const fn time(length: Duration) -> Self {
        Self::Time(length)
    }

    /// The last 1 to 512 calls.
    #[must_use]
    pub const fn calls(count: u32) -> Self {
        Self::Calls(count)
    }

    /// Checks it, and returns how many calls it can hold.
    pub(in super::super) fn check(self) -> Result<u64, InvalidSetting> {
        match self {
            Self::Time(length) if length < SHORTEST || length > LONGEST => {
                Err(InvalidSetting::new(
                    "breaker.window",
                    format_args!("{length:?}"),
                    "must be from 100 ms to an hour",
                ))
            }
            Self::Calls(count) if count == 0 || count > MAX_CALLS => Err(InvalidSetting::new(
                "breaker.window",
                format_args!("{count} calls"),
                "must hold from 1 to 512 calls",
            )),
            Self::Time(_) => Ok(u64::MAX),
            Self::Calls(count) => Ok(count.into()),
        }
    }
}

impl Default for Window {
    /// The last 10 s.
    fn default() -> Self {
        Self::Time(Duration::from_secs(10))
    }
}
