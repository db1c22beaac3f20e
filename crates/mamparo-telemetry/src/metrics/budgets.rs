//! Budgets that are read whenever metrics are collected.

use std::sync::{Arc, Mutex, PoisonError};

use mamparo_core::{Budget, Dependency, clock};
use opentelemetry::KeyValue;
use opentelemetry::metrics::Meter;

use super::catalog::{BUDGET_ALLOWED, BUDGET_CONSUMED, Metric};
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

    pub(super) fn observe_with(&self, meter: &Meter) {
        observe(meter, BUDGET_CONSUMED, &self.watched, |budget| {
            Some(budget.consumed())
        });
        observe(meter, BUDGET_ALLOWED, &self.watched, |budget| {
            // An unlimited budget allows more than can be counted.
            Some(budget.allowed(clock::now())).filter(|&allowed| allowed != u64::MAX)
        });
    }
}

fn observe(
    meter: &Meter,
    metric: Metric,
    watched: &Arc<Mutex<Watched>>,
    read: impl Fn(&Budget) -> Option<u64> + Send + Sync + 'static,
) {
    let watched = Arc::clone(watched);
    // The meter keeps the callback; the handle is good for nothing else.
    let _handle = meter
        .u64_observable_counter(metric.name)
        .with_unit(metric.unit)
        .with_description(metric.says)
        .with_callback(move |observer| {
            let watched = watched.lock().unwrap_or_else(PoisonError::into_inner);
            for (dependency, budget) in watched.iter() {
                if let Some(value) = read(budget) {
                    observer.observe(value, &[KeyValue::new(DEPENDENCY, dependency.as_str())]);
                }
            }
        })
        .build();
}
