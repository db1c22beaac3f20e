use std::future::ready;
use std::time::UNIX_EPOCH;

use mamparo::rate_limit::{Ask, Granted, LimitStore, Taking};

use super::Memory;

/// Not the memory itself: its keys are neither named nor pruned, which does for the two limits of the engines, and not for one a caller.
#[derive(Debug)]
pub(super) struct EngineLimits(pub(super) Memory);

impl LimitStore for EngineLimits {
    fn take(&self, ask: Ask) -> Taking<'_> {
        Box::pin(ready(Ok(self.0.grant(ask))))
    }
}

impl Memory {
    fn grant(&self, ask: Ask) -> Granted {
        let mut world = self.world();
        let since = self.clock().now().duration_since(UNIX_EPOCH);
        let now = since.unwrap_or_default().as_nanos();
        let now = u64::try_from(now).unwrap_or(u64::MAX);
        let kept = world.limits.entry(ask.key).or_default();
        let (granted, full_at) = ask.grant(*kept, now);
        *kept = full_at;
        granted
    }
}
