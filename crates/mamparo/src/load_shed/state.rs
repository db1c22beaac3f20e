//! The decisions, pure: what is shed, by each rule.

use mamparo_core::{Class, Kind, Verdict};

/// How many calls at once those may be that have such a share of a limit: at least one.
pub(super) fn allowed(limit: usize, share: f64) -> u64 {
    let limit = limit as u64;
    if share >= 1.0 {
        return limit; // exactly, however large
    }
    ((limit as f64 * share).ceil() as u64).clamp(1, limit.max(1))
}

/// Whether the queue still drained in an interval that is over: whether some call waited no longer than the target.
///
/// An interval that ended longer than another one ago was followed by one without a call: the queue was empty.
pub(super) const fn drains_no_more(
    ended: u64,
    now: u64,
    interval: u64,
    shortest: Option<u64>,
    target: u64,
) -> bool {
    match shortest {
        Some(shortest) => shortest > target && now.saturating_sub(ended) < interval,
        None => false,
    }
}

/// Whether a call is shed that waited so long, while the queue drains no more.
#[inline]
pub(super) fn waited_too_long(waited: u64, target: u64, share: f64) -> bool {
    waited as f64 > 2.0 * target as f64 * share
}

/// The probability with which a call is shed, by what became of the calls before it.
#[inline]
pub(super) fn rejection(requests: u32, accepts: u32, k: f64, share: f64, most: f64) -> f64 {
    let k = 1.0 + (k - 1.0) * share;
    let (requests, accepts) = (f64::from(requests), f64::from(accepts));
    ((requests - k * accepts) / (requests + 1.0)).clamp(0.0, most)
}

/// Whether the dependency accepted a call: worked on it, well or not. None where that is not known.
pub(super) const fn accepted(verdict: &Verdict) -> Option<bool> {
    match verdict.class() {
        Class::Success => Some(true),
        Class::Failure(Kind::Server | Kind::Client) => Some(true),
        Class::Failure(_) => Some(false),
        Class::Ignored => None,
    }
}
