//! What an operator reads of a rate limit.

use std::sync::Arc;
use std::time::Duration;

use mamparo_core::clock;

use super::RateLimitPolicy;
use super::bucket::Bucket;
use super::layer::Since;

/// Reads a rate limit while it works; made by [`RateLimitLayer::handle`](super::RateLimitLayer::handle).
///
/// It reads the limit of all calls that have no key, by the settings that the layer had when the handle was made.
///
/// ```
/// use mamparo::rate_limit::{RateLimitLayer, RateLimitPolicy};
/// use std::time::Duration;
///
/// let policy = RateLimitPolicy::per(Duration::from_secs(1), 50).burst(10).build()?;
/// let handle = RateLimitLayer::new(policy).handle();
/// assert_eq!((handle.available(), handle.waiting(), handle.retry_after()), (10, 0, None));
/// # Ok::<(), mamparo_core::InvalidSetting>(())
/// ```
#[derive(Clone, Debug)]
pub struct RateLimitHandle {
    policy: RateLimitPolicy,
    since: Since,
    bucket: Arc<Bucket>,
}

impl RateLimitHandle {
    pub(super) const fn new(policy: RateLimitPolicy, since: Since, bucket: Arc<Bucket>) -> Self {
        Self {
            policy,
            since,
            bucket,
        }
    }

    /// Returns the limit's settings.
    #[must_use]
    pub const fn policy(&self) -> &RateLimitPolicy {
        &self.policy
    }

    /// Returns how much may pass at once now.
    #[must_use]
    pub fn available(&self) -> u32 {
        let now = self.since.nanos(clock::now());
        self.policy.gcra.room(self.bucket.meter.full_at(), now)
    }

    /// Returns how much waits for its turn.
    #[must_use]
    pub fn waiting(&self) -> u64 {
        self.bucket.ahead()
    }

    /// Returns when the next may pass that does not wait yet; none where one may pass now.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        let now = self.since.nanos(clock::now());
        let ahead = self.waiting().saturating_add(1);
        let wait = (self.policy.gcra).wait(self.bucket.meter.full_at(), now, ahead);
        (wait > 0).then(|| Duration::from_nanos(wait))
    }
}
