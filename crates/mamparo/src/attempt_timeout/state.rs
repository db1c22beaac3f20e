//! The limit in effect: the attempt's own, or what remains of the deadline.

use std::time::Duration;

use mamparo_core::clock::Instant;
use mamparo_core::{AttemptLimit, Deadline};

/// What bounds an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// Nothing remains of the deadline: the attempt is not begun.
    Spent,
    /// No timeout is set and there is no deadline.
    Nothing,
    /// The attempt's own timeout.
    Timeout,
    /// What remains of the deadline, less the reserve.
    Deadline,
}

/// The smaller of an attempt's timeout and what remains until it must be over, reserve kept back.
#[inline]
pub(super) fn limit(
    now: Instant,
    timeout: Option<Duration>,
    must_be_over: Option<Deadline>,
) -> (By, AttemptLimit) {
    let spent = must_be_over.is_some_and(|deadline| deadline.has_passed(now));
    if spent {
        return (By::Spent, AttemptLimit::NONE);
    }
    if let Some(timeout) = timeout {
        let cut = Deadline::after(now, timeout);
        if must_be_over.is_none_or(|deadline| cut <= deadline) {
            return (By::Timeout, AttemptLimit::until(cut, timeout));
        }
    }
    match must_be_over {
        Some(deadline) => {
            let remaining = deadline.remaining(now);
            (By::Deadline, AttemptLimit::until(deadline, remaining))
        }
        None => (By::Nothing, AttemptLimit::NONE),
    }
}
