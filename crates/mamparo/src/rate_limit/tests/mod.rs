//! A rate limit as its caller sees it, and its decision over any schedule.

mod calls;
mod keys;
mod obeying;
mod schedule;
mod waits;

use std::time::Duration;

use mamparo_core::{BoxError, Reason, Rejection};
use mamparo_testkit::service::{Script, Step};

use super::{RateLimitBuilder, RateLimitLayer, RateLimitPolicy};

const fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

const fn secs(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn rejection(error: &BoxError) -> &Rejection {
    Rejection::of(&**error).expect("a rejection")
}

/// When a rejected call would pass.
fn retry_after(error: &BoxError) -> Duration {
    let rejection = rejection(error);
    assert_eq!(
        (rejection.reason(), rejection.sent()),
        (Reason::RateLimited, false)
    );
    rejection.retry_after().expect("how long to wait")
}

fn peer() -> Script<u32, u32> {
    Script::new([]).otherwise(|| Step::answer(1))
}

fn limit(policy: RateLimitBuilder) -> RateLimitLayer {
    RateLimitLayer::new(policy.build().unwrap()).dependency("mail")
}

/// So many a second.
fn per_second(count: u32) -> RateLimitBuilder {
    RateLimitPolicy::per(secs(1), count)
}
