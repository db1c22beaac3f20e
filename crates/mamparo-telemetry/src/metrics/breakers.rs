//! The states of circuit breakers, as they have said, read whenever metrics are collected.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mamparo_core::Dependency;
use mamparo_core::breaker::{BreakerState, Transition};
use opentelemetry::KeyValue;
use opentelemetry::metrics::Meter;

use super::catalog::BREAKER_LEVEL;
use super::sources::Sources;
use crate::semconv::{BREAKER_KEY, DEPENDENCY};

/// As many breakers as have a gauge. Past them, one that opens takes the place of one that is closed.
pub const MAX_BREAKERS: usize = 1024;

/// A dependency, and the key where it has a breaker for each.
type Name = (Dependency, Option<Arc<str>>);

/// The breakers that have said something.
#[derive(Clone, Debug, Default)]
pub(super) struct Breakers(Arc<Mutex<HashMap<Name, BreakerState>>>);

impl Breakers {
    fn states(&self) -> MutexGuard<'_, HashMap<Name, BreakerState>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has a gauge from now on, and not only from its first change on.
    pub(super) fn watch(&self, dependency: Dependency) {
        self.set((dependency, None), BreakerState::Closed, |_| false);
    }

    /// Follows a breaker to its new state, or forgets it.
    pub(super) fn follow(&self, dependency: Dependency, change: &Transition) {
        let name = (dependency, change.key.clone());
        match change.to {
            Some(state) => self.set(name, state, |kept| kept.level() < state.level()),
            None => {
                self.states().remove(&name);
            }
        }
    }

    /// Sets a state; where there is no room for it, in place of one that `gives_way`.
    fn set(&self, name: Name, state: BreakerState, gives_way: impl Fn(BreakerState) -> bool) {
        let mut states = self.states();
        if states.len() >= MAX_BREAKERS && !states.contains_key(&name) {
            let found = states.iter().find(|(_, kept)| gives_way(**kept));
            let Some(found) = found.map(|(name, _)| name.clone()) else {
                return;
            };
            states.remove(&found);
        }
        states.insert(name, state);
    }

    pub(super) fn observe_with(&self, meter: &Meter, sources: &Sources) {
        let (breakers, sources) = (self.clone(), sources.clone());
        // The meter keeps the callback; the handle is good for nothing else.
        let _handle = meter
            .u64_observable_gauge(BREAKER_LEVEL.name)
            .with_unit(BREAKER_LEVEL.unit)
            .with_description(BREAKER_LEVEL.says)
            .with_callback(move |observer| {
                // What is read now goes before what was heard.
                let mut read = HashSet::new();
                sources.each(|vitals| {
                    if let Some(state) = vitals.breaker
                        && read.insert(vitals.dependency)
                    {
                        let dependency = KeyValue::new(DEPENDENCY, vitals.dependency.as_str());
                        observer.observe(u64::from(state.level()), &[dependency]);
                    }
                });
                for ((dependency, key), state) in breakers.states().iter() {
                    if key.is_none() && read.contains(dependency) {
                        continue;
                    }
                    let dependency = KeyValue::new(DEPENDENCY, dependency.as_str());
                    let level = u64::from(state.level());
                    match key {
                        Some(key) => {
                            let key = KeyValue::new(BREAKER_KEY, Arc::clone(key));
                            observer.observe(level, &[dependency, key]);
                        }
                        None => observer.observe(level, &[dependency]),
                    }
                }
            })
            .build();
    }
}
