//! What an operator reads of a stack while it works, and forces.

use std::sync::atomic::Ordering::Relaxed;

use mamparo_core::Budget;

use super::{Protocol, Stack};
use crate::breaker::{BreakerHandle, BreakerLayer};
use crate::bulkhead::BulkheadHandle;
use crate::load_shed::LoadShedLayer;
use crate::rate_limit::{RateLimitHandle, RateLimitLayer};

impl<O, A, F, P: Protocol> Stack<O, A, F, P> {
    /// Returns a handle of the breaker that observes attempts; none where it is off.
    ///
    /// It is the breaker of all services that this stack has made or will make, and of its clones.
    ///
    /// ```
    /// use mamparo::breaker::BreakerState;
    /// use mamparo::stack::Stack;
    ///
    /// let stack = Stack::http("catalog");
    /// let breaker = stack.breaker_handle().unwrap();
    /// breaker.force_open();
    /// assert_eq!(breaker.state(), BreakerState::ForcedOpen);
    /// ```
    #[must_use]
    pub fn breaker_handle(&self) -> Option<BreakerHandle> {
        handle(Some(&self.breaker))
    }

    /// Returns a handle of the breaker that observes operations; none where it is off.
    #[must_use]
    pub fn operation_breaker_handle(&self) -> Option<BreakerHandle> {
        handle(self.operation_breaker.as_ref())
    }

    /// Returns a handle of the bulkhead, which reads and resizes it; none where it is off.
    #[must_use]
    pub fn bulkhead_handle(&self) -> Option<BulkheadHandle> {
        (!self.bulkhead.policy().is_off()).then(|| self.bulkhead.handle())
    }

    /// Returns the layer that sheds load, which says how much there is; none where it is off.
    #[must_use]
    pub fn load_shed_layer(&self) -> Option<&LoadShedLayer<P>> {
        let layer = self.load_shed.as_ref();
        layer.filter(|layer| !layer.policy().is_off())
    }

    /// Returns a handle of the rate limit, which reads it; none where it is off.
    #[must_use]
    pub fn rate_limit_handle(&self) -> Option<RateLimitHandle> {
        let layer = self.rate_limit.as_ref();
        let on = layer.filter(|layer| !layer.policy().is_off());
        on.map(RateLimitLayer::handle)
    }

    /// Returns how many operations so far ended later than their deadline, by more than timers are late: something blocks.
    ///
    /// Without an observer, what was never pending is not looked at: that would cost a look at the clock.
    #[must_use]
    pub fn late_operations(&self) -> u64 {
        self.late.load(Relaxed)
    }

    /// Returns the budget that pays for resends.
    #[must_use]
    pub fn budget(&self) -> &Budget {
        self.owner.budget()
    }
}

fn handle<P: Protocol>(breaker: Option<&BreakerLayer<P>>) -> Option<BreakerHandle> {
    let on = breaker.filter(|layer| !layer.policy().is_off());
    on.map(BreakerLayer::handle)
}
