//! The limit in effect: the attempt's own, or what remains of the deadline.

use std::time::Duration;

/// What bounds an attempt that begins now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Limit {
    /// Nothing remains: it is not sent.
    Spent,
    /// Nothing bounds it.
    None,
    /// Its own timeout is the smaller.
    Timeout(Duration),
    /// What remains of the deadline is the smaller.
    Deadline(Duration),
}

impl Limit {
    /// The time until the limit is reached, if there is one.
    pub(super) const fn duration(self) -> Option<Duration> {
        match self {
            Self::Timeout(limit) | Self::Deadline(limit) => Some(limit),
            Self::Spent | Self::None => None,
        }
    }
}

/// Picks the smaller of an attempt's own timeout and what remains until an attempt must be over.
#[inline]
pub(super) fn limit(timeout: Option<Duration>, remaining: Option<Duration>) -> Limit {
    match (timeout, remaining) {
        (_, Some(Duration::ZERO)) => Limit::Spent,
        (None, None) => Limit::None,
        (Some(timeout), None) => Limit::Timeout(timeout),
        (Some(timeout), Some(remaining)) if timeout <= remaining => Limit::Timeout(timeout),
        (_, Some(remaining)) => Limit::Deadline(remaining),
    }
}
