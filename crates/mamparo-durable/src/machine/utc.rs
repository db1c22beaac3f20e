//! Durable instants.

use std::fmt::{self, Display};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use mamparo_core::InvalidSetting;
use mamparo_core::clock::WallClock;

/// A durable instant: whole milliseconds since 1970, UTC, up to the end of the year 9999.
///
/// It is stored, compared and sent as that number. Arithmetic stops at the two ends instead of wrapping.
///
/// ```
/// use mamparo_durable::machine::Utc;
/// use std::time::Duration;
///
/// let instant = Utc::from_millis(1_700_000_000_000)?.plus(Duration::from_secs(2 * 3600));
/// assert_eq!(instant.to_string(), "2023-11-15T00:13:20.000Z");
/// assert_eq!("2023-11-15T00:13:20Z".parse(), Ok(instant));
/// # Ok::<(), mamparo_core::InvalidSetting>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Utc(i64);

impl Utc {
    /// The first instant: 1970-01-01.
    pub const MIN: Self = Self(0);

    /// The last instant: the last millisecond of the year 9999, the last that RFC 3339 can write.
    pub const MAX: Self = Self(253_402_300_799_999);

    /// Takes milliseconds since 1970.
    ///
    /// # Errors
    ///
    /// [`InvalidSetting`] before 1970 and after the year 9999.
    pub fn from_millis(millis: i64) -> Result<Self, InvalidSetting> {
        let instant = Self(millis);
        if (Self::MIN..=Self::MAX).contains(&instant) {
            return Ok(instant);
        }
        Err(InvalidSetting::new(
            "instant",
            millis,
            "must be milliseconds since 1970, up to the year 9999",
        ))
    }

    /// Reads a wall clock; what lies outside of the range is its nearer end.
    #[must_use]
    pub fn of(clock: &dyn WallClock) -> Self {
        Self::MIN.plus(clock.now().duration_since(UNIX_EPOCH).unwrap_or_default())
    }

    /// Returns the milliseconds since 1970.
    #[must_use]
    pub const fn millis(self) -> i64 {
        self.0
    }

    /// Adds a duration, in whole milliseconds; stops at [`Utc::MAX`].
    #[must_use]
    pub fn plus(self, by: Duration) -> Self {
        let by = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(by)).min(Self::MAX)
    }

    /// Subtracts a duration, in whole milliseconds; stops at [`Utc::MIN`].
    #[must_use]
    pub fn minus(self, by: Duration) -> Self {
        let by = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        Self(self.0.saturating_sub(by)).max(Self::MIN)
    }

    /// Returns how long ago `earlier` was; zero if it is later, as after a clock stepped back.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        let millis = self.0.saturating_sub(earlier.0);
        Duration::from_millis(u64::try_from(millis).unwrap_or(0))
    }

    /// Returns the same instant as the standard library writes it.
    #[must_use]
    pub fn to_system_time(self) -> SystemTime {
        UNIX_EPOCH + self.since(Self::MIN)
    }
}

impl Display for Utc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        humantime::format_rfc3339_millis(self.to_system_time()).fmt(f)
    }
}

impl std::str::FromStr for Utc {
    type Err = InvalidSetting;

    fn from_str(text: &str) -> Result<Self, InvalidSetting> {
        let refused = || {
            InvalidSetting::new(
                "instant",
                text,
                "must be UTC in RFC 3339, such as 2030-01-31T08:00:00Z",
            )
        };
        let time = humantime::parse_rfc3339(text).map_err(|_| refused())?;
        let since = time.duration_since(UNIX_EPOCH).map_err(|_| refused())?;
        Ok(Self::MIN.plus(since))
    }
}
