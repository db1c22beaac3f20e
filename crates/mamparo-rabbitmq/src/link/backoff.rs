//! Ever longer waits between tries.

use std::time::Duration;

/// The waits: doubled each time, up to ten seconds.
const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(10);

/// Doublings after which the longest wait is reached.
const DOUBLINGS: u32 = 7;

/// Ever longer waits, each somewhere between half and all of its length: clients of one broker don't come back in step.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Backoff(u32);

impl Backoff {
    pub(crate) fn next(&mut self) -> Duration {
        let doubled = FIRST.saturating_mul(1 << self.0.min(DOUBLINGS));
        self.0 = self.0.saturating_add(1);
        doubled
            .min(LONGEST)
            .mul_f64(fastrand::f64().mul_add(0.5, 0.5))
    }

    pub(crate) const fn reset(&mut self) {
        self.0 = 0;
    }
}
