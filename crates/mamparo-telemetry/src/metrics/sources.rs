//! Those who know dependencies, asked whenever metrics are collected.

use std::sync::{Arc, Mutex, PoisonError};

use mamparo_core::vitals::{Monitored, Vitals};

/// As many as are asked.
pub const MAX_MONITORED: usize = 16;

/// Whoever is asked.
#[derive(Clone, Debug, Default)]
pub(super) struct Sources(Arc<Mutex<Vec<Arc<dyn Monitored>>>>);

impl Sources {
    pub(super) fn add(&self, source: Arc<dyn Monitored>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() < MAX_MONITORED {
            all.push(source);
        }
    }

    pub(super) fn each(&self, mut tell: impl FnMut(&Vitals)) {
        // A copy: what is asked may take its time.
        let all = self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        all.iter().for_each(|source| source.each(&mut tell));
    }
}
