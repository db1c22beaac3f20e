//! The policies' breakers, asked before an attempt is claimed.

use std::collections::HashMap;

use mamparo::breaker::BreakerHandle;
use mamparo::policy::Policies;
use mamparo_core::breaker::BreakerState;
use mamparo_core::clock::SystemClock;
use mamparo_durable::handler::Gatekeeper;
use mamparo_durable::machine::{Gate, Terms, Utc};

/// The breakers of all dependencies.
#[derive(Debug)]
pub(super) struct Breakers {
    by_dependency: HashMap<String, Vec<BreakerHandle>>,
}

impl Breakers {
    pub(super) fn of(policies: &Policies) -> Self {
        let breakers = policies.iter().filter_map(|(name, policy)| {
            let stack = policy.http().ok()?;
            let handles = [stack.breaker_handle(), stack.operation_breaker_handle()];
            Some((name.to_owned(), handles.into_iter().flatten().collect()))
        });
        Self {
            by_dependency: breakers.collect(),
        }
    }
}

impl Gatekeeper for Breakers {
    fn gate(&self, terms: &Terms) -> Gate {
        let dependency = terms.dependency.as_ref().map(|name| name.as_str());
        let breakers = dependency.and_then(|name| self.by_dependency.get(name));
        breakers
            .into_iter()
            .flatten()
            .map(ask)
            .find(|gate| *gate != Gate::Pass)
            .unwrap_or(Gate::Pass)
    }
}

fn ask(breaker: &BreakerHandle) -> Gate {
    let snapshot = breaker.snapshot();
    let wait = snapshot.retry_after.filter(|wait| !wait.is_zero());
    match (snapshot.state, wait) {
        (BreakerState::Open, Some(wait)) => {
            let until = Utc::of(&SystemClock).plus(wait);
            Gate::Postpone { until: Some(until) }
        }
        (BreakerState::ForcedOpen, _) => Gate::Postpone { until: None },
        // One whose wait is over lets a probe pass.
        _ => Gate::Pass,
    }
}
