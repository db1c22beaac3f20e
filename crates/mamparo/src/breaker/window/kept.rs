//! One of the two windows, or none.

use mamparo_core::breaker::Rates;

use super::Window;
use super::calls::CountWindow;
use super::time::TimeWindow;

/// How a call ended that was not both good and quick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Bad {
    pub(in super::super) failed: bool,
    pub(in super::super) slow: bool,
}

/// What is kept of the calls that ended.
#[derive(Debug)]
pub(in super::super) enum Kept {
    /// No rule needs any of it.
    Nothing,
    Time(TimeWindow),
    Calls(CountWindow),
}

impl Kept {
    /// Keeps what a window holds; `spread` over a shard for each thread.
    pub(in super::super) fn new(window: Option<Window>, spread: bool) -> Self {
        match window {
            None => Self::Nothing,
            Some(Window::Time(length)) => Self::Time(TimeWindow::new(length, spread)),
            Some(Window::Calls(count)) => Self::Calls(CountWindow::new(count, spread)),
        }
    }

    /// A call went well, in that epoch of the breaker; writes to nothing that other threads read.
    #[inline]
    pub(in super::super) fn good(&self, epoch: u64, now: impl FnOnce() -> u64) {
        match self {
            Self::Nothing => {}
            Self::Time(window) => window.good(epoch, now()),
            Self::Calls(window) => window.good(),
        }
    }

    /// A call did not go well.
    pub(in super::super) fn bad(&self, epoch: u64, now: u64, bad: Bad) {
        match self {
            Self::Nothing => {}
            Self::Time(window) => window.bad(epoch, now, bad),
            Self::Calls(window) => window.bad(epoch, bad),
        }
    }

    /// Returns what the window holds of that epoch.
    pub(in super::super) fn rates(&self, epoch: u64, now: u64, minimum: u64) -> Rates {
        match self {
            Self::Nothing => Rates::new(0, 0, 0, minimum),
            Self::Time(window) => window.rates(epoch, now, minimum),
            Self::Calls(window) => window.rates(epoch, minimum),
        }
    }

    /// A new epoch begins: nothing that was counted before is in its window.
    pub(in super::super) fn begin(&self, epoch: u64) {
        if let Self::Calls(window) = self {
            window.begin(epoch);
        }
    }

    /// Returns how many bytes it takes beside itself.
    #[cfg(test)]
    pub(in super::super) fn bytes(&self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::Time(window) => window.bytes(),
            Self::Calls(window) => window.bytes(),
        }
    }
}
