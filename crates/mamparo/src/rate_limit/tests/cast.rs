//! What the tests of a rate limit share.

use std::time::Duration;

use mamparo_core::{BoxError, Reason, Rejection};
use mamparo_testkit::service::{Script, Step};

use super::super::{RateLimitBuilder, RateLimitLayer, RateLimitPolicy};

pub(super) const fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

pub(super) const fn secs(count: u64) -> Duration {
    Duration::from_secs(count)
}

pub(super) fn rejection(error: &BoxError) -> &Rejection {
    Rejection::of(&**error).expect("a rejection")
}

/// When a rejected call would pass.
pub(super) fn retry_after(error: &BoxError) -> Duration {
    let rejection = rejection(error);
    assert_eq!(
        (rejection.reason(), rejection.sent()),
        (Reason::RateLimited, false)
    );
    rejection.retry_after().expect("how long to wait")
}

pub(super) fn peer() -> Script<u32, u32> {
    Script::new([]).otherwise(|| Step::answer(1))
}

pub(super) fn limit(policy: RateLimitBuilder) -> RateLimitLayer {
    RateLimitLayer::new(policy.build().unwrap()).dependency("mail")
}

/// So many a second.
pub(super) fn per_second(count: u32) -> RateLimitBuilder {
    RateLimitPolicy::per(secs(1), count)
}
