//! Budgets that are read whenever metrics are collected.

use std::sync::{Arc, Mutex, PoisonError};

use mamparo_core::{Budget, Dependency, clock};
use opentelemetry::KeyValue;
use opentelemetry::metrics::{AsyncInstrument, Meter};

use super::catalog::{BUDGET_ALLOWED, BUDGET_CONSUMED, BUDGET_TOKENS};
use super::metric::Metric;
use super::sources::Sources;
use crate::semconv::DEPENDENCY;

/// As many budgets as are watched.
pub const MAX_BUDGETS: usize = 1024;

type Watched = Vec<(Dependency, Budget)>;

/// The budgets that are watched.
#[derive(Debug, Default)]
pub(super) struct Budgets {
    watched: Arc<Mutex<Watched>>,
}

impl Budgets {
    pub(super) fn watch(&self, dependency: Dependency, budget: Budget) {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        if watched.len() < MAX_BUDGETS {
            watched.push((dependency, budget));
        }
    }

    pub(super) fn observe_with(&self, meter: &Meter, sources: &Sources) {
        let to = (meter, sources);
        self.count(to, BUDGET_CONSUMED, |budget| Some(budget.consumed()));
        self.count(to, BUDGET_ALLOWED, |budget| {
            // An unlimited budget allows more than can be counted.
            Some(budget.allowed(clock::now())).filter(|&allowed| allowed != u64::MAX)
        });
        // The meter keeps the callback; the handle is good for nothing else.
        let _handle = meter
            .u64_observable_gauge(BUDGET_TOKENS.name)
            .with_unit(BUDGET_TOKENS.unit)
            .with_description(BUDGET_TOKENS.says)
            .with_callback(self.read(sources, |budget| budget.tokens(clock::now())))
            .build();
    }

    fn count(
        &self,
        (meter, sources): (&Meter, &Sources),
        metric: Metric,
        read: impl Fn(&Budget) -> Option<u64> + Send + Sync + 'static,
    ) {
        // As above.
        let _handle = meter
            .u64_observable_counter(metric.name)
            .with_unit(metric.unit)
            .with_description(metric.says)
            .with_callback(self.read(sources, read))
            .build();
    }

    /// Says one number of each budget that has it.
    fn read(
        &self,
        sources: &Sources,
        read: impl Fn(&Budget) -> Option<u64> + Send + Sync + 'static,
    ) -> impl Fn(&dyn AsyncInstrument<u64>) + Send + Sync + 'static {
        let (watched, sources) = (Arc::clone(&self.watched), sources.clone());
        move |observer| {
            let tell = |dependency: Dependency, budget: &Budget| {
                if let Some(value) = read(budget) {
                    observer.observe(value, &[KeyValue::new(DEPENDENCY, dependency.as_str())]);
                }
            };
            let watched = watched.lock().unwrap_or_else(PoisonError::into_inner);
            watched
                .iter()
                .for_each(|(dependency, budget)| tell(*dependency, budget));
            drop(watched);
            sources.each(|vitals| {
                if let Some(budget) = &vitals.budget {
                    tell(vitals.dependency, budget);
                }
            });
        }
    }
}
