use std::future::ready;
use std::time::UNIX_EPOCH;

use mamparo::rate_limit::{Ask, Granted, LimitStore, Taking};

use super::Memory;

impl LimitStore for Memory {
    fn take(&self, ask: Ask) -> Taking<'_> {
        Box::pin(ready(Ok(self.grant(ask))))
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
