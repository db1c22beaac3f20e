//! Ever longer waits between tries.

use std::time::Duration;

use mamparo_core::{Backoff, Jitter};

const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(10);

/// Ever longer waits, of which half is left to chance: clients of one broker don't come back in step.
#[derive(Debug)]
pub(crate) struct Waits {
    backoff: Backoff,
    waited: u32,
}

impl Default for Waits {
    fn default() -> Self {
        let growing = Backoff::builder()
            .base(FIRST)
            .cap(LONGEST)
            .jitter(Jitter::Equal)
            .build();
        Self {
            // As these are none that it refuses.
            backoff: growing.unwrap_or_default(),
            waited: 0,
        }
    }
}

impl Waits {
    pub(crate) fn next(&mut self) -> Duration {
        self.waited = self.waited.saturating_add(1);
        let mut rng = fastrand::Rng::new();
        self.backoff.wait(self.waited, Duration::ZERO, &mut rng)
    }

    pub(crate) const fn reset(&mut self) {
        self.waited = 0;
    }
}
