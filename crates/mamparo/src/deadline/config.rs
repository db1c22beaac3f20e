//! The settings of a client's deadline.

use std::time::Duration;

use mamparo_core::{InvalidSetting, Reserve, clock};

/// How long a whole operation may take.
///
/// ```
/// use mamparo::deadline::DeadlinePolicy;
/// use std::time::Duration;
///
/// let policy = DeadlinePolicy::within(Duration::from_secs(2))?;
/// assert_eq!(policy.limit(), Some(Duration::from_secs(2)));
/// let error = DeadlinePolicy::within(Duration::ZERO).unwrap_err();
/// assert_eq!(error.setting(), "deadline");
/// # Ok::<(), mamparo_core::InvalidSetting>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeadlinePolicy {
    limit: Option<Duration>,
    reserve: Reserve,
}

impl DeadlinePolicy {
    /// Bounds an operation by its own limit, or by the caller's deadline if that is earlier.
    ///
    /// No limit is longer than [`clock::FAR_FUTURE`].
    ///
    /// # Errors
    ///
    /// Refuses zero: nothing could be done in it.
    pub fn within(limit: Duration) -> Result<Self, InvalidSetting> {
        if limit.is_zero() {
            return Err(InvalidSetting::new(
                "deadline",
                "0s",
                "must be longer than zero: for no limit of its own use `DeadlinePolicy::none`",
            ));
        }
        Ok(Self {
            limit: Some(limit.min(clock::FAR_FUTURE)),
            reserve: Reserve::default(),
        })
    }

    /// Sets no limit of its own: only a caller's deadline binds, and without one the operation may take for ever.
    #[must_use]
    pub fn none() -> Self {
        Self {
            limit: None,
            reserve: Reserve::default(),
        }
    }

    /// Sets the time kept back to deliver the answer: 5 %, at most 50 ms, by default.
    ///
    /// # Errors
    ///
    /// Refuses a reserve that takes the whole deadline.
    pub fn reserve(mut self, reserve: Reserve) -> Result<Self, InvalidSetting> {
        if let Some(limit) = self.limit
            && reserve.of(limit) >= limit
        {
            return Err(InvalidSetting::new(
                "reserve",
                format_args!("{:?}", reserve.of(limit)),
                "must be shorter than the deadline: it is kept back from it",
            ));
        }
        self.reserve = reserve;
        Ok(self)
    }

    /// Returns the operation's own limit; none when only a caller's deadline binds.
    #[must_use]
    pub const fn limit(self) -> Option<Duration> {
        self.limit
    }

    /// Returns the time kept back of what remains.
    #[must_use]
    pub(super) fn reserve_of(self, remaining: Duration) -> Duration {
        self.reserve.of(remaining)
    }
}

impl Default for DeadlinePolicy {
    /// Bounds an operation by 10 s: no network call without a limit.
    fn default() -> Self {
        Self {
            limit: Some(Duration::from_secs(10)),
            reserve: Reserve::default(),
        }
    }
}
