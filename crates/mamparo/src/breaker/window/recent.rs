//! A window that can give way to one of another shape while calls are counted.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use mamparo_core::breaker::Rates;

use super::{Bad, Kept, Window};
use crate::sync::{AtomicU64, Ordering};

/// What is kept by the settings that hold now.
///
/// The first window stands here by value, since hardly any ever gives way.
#[derive(Debug)]
pub(in super::super) struct Recent {
    first: Kept,
    /// Whether the first has given way.
    is_renewed: AtomicU64,
    renewed: ArcSwapOption<Kept>,
    spread: bool,
}

impl Recent {
    pub(in super::super) fn new(window: Option<Window>, spread: bool) -> Self {
        Self {
            first: Kept::new(window, spread),
            is_renewed: AtomicU64::new(0),
            renewed: ArcSwapOption::empty(),
            spread,
        }
    }

    /// Begins anew with a window of another shape, in that epoch of the breaker.
    pub(in super::super) fn renew(&self, window: Option<Window>, epoch: u64) {
        let kept = Kept::new(window, self.spread);
        kept.begin(epoch);
        self.renewed.store(Some(Arc::new(kept)));
        self.is_renewed.store(1, Ordering::Release);
    }

    #[inline]
    fn with<T>(&self, then: impl FnOnce(&Kept) -> T) -> T {
        if self.is_renewed.load(Ordering::Acquire) == 0 {
            return then(&self.first);
        }
        match &*self.renewed.load() {
            Some(kept) => then(kept),
            None => then(&self.first),
        }
    }

    #[inline]
    pub(in super::super) fn good(&self, epoch: u64, now: impl FnOnce() -> u64) {
        self.with(|kept| kept.good(epoch, now));
    }

    pub(in super::super) fn bad(&self, epoch: u64, now: u64, bad: Bad) {
        self.with(|kept| kept.bad(epoch, now, bad));
    }

    pub(in super::super) fn rates(&self, epoch: u64, now: u64, minimum: u64) -> Rates {
        self.with(|kept| kept.rates(epoch, now, minimum))
    }

    pub(in super::super) fn begin(&self, epoch: u64) {
        self.with(|kept| kept.begin(epoch));
    }

    #[cfg(test)]
    pub(in super::super) fn bytes(&self) -> usize {
        self.with(Kept::bytes)
    }
}
