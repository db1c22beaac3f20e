//! The settings of a client's deadline.

use std::time::Duration;

use mamparo_core::clock::{self, Instant};
use mamparo_core::{Deadline, InvalidSetting, Reserve};

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
    /// What the limit leaves for attempts: reckoned here, and not at every call.
    for_attempts: Duration,
}

impl DeadlinePolicy {
    fn new(limit: Option<Duration>, reserve: Reserve) -> Self {
        let limit_or_none = limit.unwrap_or_default();
        Self {
            limit,
            reserve,
            for_attempts: limit_or_none.saturating_sub(reserve.of(limit_or_none)),
        }
    }

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
        Ok(Self::new(
            Some(limit.min(clock::FAR_FUTURE)),
            Reserve::default(),
        ))
    }

    /// Sets no limit of its own: only a caller's deadline binds, and without one the operation may take for ever.
    #[must_use]
    pub fn none() -> Self {
        Self::new(None, Reserve::default())
    }

    /// Sets the time kept back to deliver the answer: 5 %, at most 50 ms, by default.
    ///
    /// # Errors
    ///
    /// Refuses a reserve that takes the whole deadline.
    pub fn reserve(self, reserve: Reserve) -> Result<Self, InvalidSetting> {
        if let Some(limit) = self.limit
            && reserve.of(limit) >= limit
        {
            return Err(InvalidSetting::new(
                "reserve",
                format_args!("{:?}", reserve.of(limit)),
                "must be shorter than the deadline: it is kept back from it",
            ));
        }
        Ok(Self::new(self.limit, reserve))
    }

    /// Returns the operation's own limit; none when only a caller's deadline binds.
    #[must_use]
    pub const fn limit(self) -> Option<Duration> {
        self.limit
    }

    /// Returns when an operation that begins now must be over, and its attempts, by this policy alone.
    #[inline]
    pub(super) fn own(&self, now: Instant) -> Option<(Deadline, Deadline)> {
        let operation = Deadline::after(now, self.limit?);
        Some((operation, Deadline::after(now, self.for_attempts)))
    }

    /// Returns the same for an operation of which only that much remains.
    pub(super) fn within_remaining(
        &self,
        now: Instant,
        remaining: Duration,
    ) -> (Deadline, Deadline) {
        let reserve = self.reserve.of(remaining);
        let for_attempts = remaining.saturating_sub(reserve);
        (
            Deadline::after(now, remaining),
            Deadline::after(now, for_attempts),
        )
    }
}

impl Default for DeadlinePolicy {
    /// Bounds an operation by 10 s: no network call without a limit.
    fn default() -> Self {
        Self::new(Some(Duration::from_secs(10)), Reserve::default())
    }
}
