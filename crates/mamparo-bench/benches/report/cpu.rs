//! The processor's time of this thread: leaves out what other processes take.

use std::time::Duration;

#[cfg(unix)]
pub(super) fn time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// Elsewhere the clock has to do.
#[cfg(not(unix))]
pub(super) fn time() -> Duration {
    use std::sync::LazyLock;

    use mamparo_core::clock::{self, Instant};

    static START: LazyLock<Instant> = LazyLock::new(clock::now);
    START.elapsed()
}
