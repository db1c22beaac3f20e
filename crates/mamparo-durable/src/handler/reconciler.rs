//! Finds what is stuck.

use std::time::Duration;

use futures_util::StreamExt as _;
use mamparo_core::InvalidSetting;

use super::{Handled, Runner};
use crate::backend::{BackendError, QueueName};
use crate::fail_point::FailPoint;
use crate::machine::{Alert, AlertKind, Input, Note, Patience, Record};

/// Finds transactions that sit in an intermediate state for too long, and brings them back on their way.
///
/// It goes through the machine like every message, so that any number of replicas may run, at any moment.
#[derive(Clone, Debug)]
pub struct Reconciler {
    runner: Runner,
    patience: Patience,
    limit: usize,
    at_once: usize,
}

/// What one cycle found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cycle {
    /// As many transactions as were stuck; as many as the limit mean that there may be more.
    pub found: usize,
    /// As many as were brought back on their way, or ended.
    pub mended: usize,
    /// As many as the backend failed for; the next cycle tries again.
    pub failed: usize,
    /// Dead letters in all queues.
    pub dead: u64,
}

impl Reconciler {
    /// Starts from the default thresholds, 1 000 transactions a cycle and 64 of them at a time.
    pub const fn builder(runner: Runner) -> ReconcilerBuilder {
        ReconcilerBuilder {
            reconciler: Self {
                runner,
                patience: Patience {
                    scheduling: Duration::from_secs(60),
                    scheduled: Duration::from_secs(60),
                    sending: Duration::from_secs(60),
                    in_flight: Duration::from_secs(3600),
                },
                limit: 1_000,
                at_once: 64,
            },
        }
    }

    /// Runs one cycle. `before` is what the last one returned: dead letters are told when there were none.
    ///
    /// # Errors
    ///
    /// The store's, if it can't say what is stuck. That one transaction fails stops no other.
    pub async fn cycle(&self, before: Cycle) -> Result<Cycle, BackendError> {
        let store = self.runner.backend().store();
        let stuck = store
            .stuck(self.runner.now(), self.patience, self.limit)
            .await?;
        let mut cycle = Cycle {
            found: stuck.len(),
            ..Cycle::default()
        };
        let mut mending = futures_util::stream::iter(stuck)
            .map(|record| self.mend(record))
            .buffer_unordered(self.at_once);
        while let Some(handled) = mending.next().await {
            match handled {
                Ok(Handled {
                    note: Note::Applied | Note::Resumed,
                    ..
                }) => cycle.mended += 1,
                Ok(_) => {}
                Err(_) => cycle.failed += 1,
            }
        }
        for queue in QueueName::ALL {
            cycle.dead += self.runner.backend().queue(queue).depth().await?.dead;
        }
        self.tell(before, cycle);
        Ok(cycle)
    }

    /// Leaves what waits for a message alone for so long at least.
    pub(crate) fn no_sooner(mut self, patience: Duration) -> Self {
        let Patience {
            scheduled,
            sending,
            in_flight,
            ..
        } = &mut self.patience;
        for state in [scheduled, sending, in_flight] {
            *state = patience.max(*state);
        }
        self
    }

    async fn mend(&self, record: Record) -> Result<Handled, BackendError> {
        FailPoint::Found.reach();
        self.runner
            .handle_loaded(record, Input::Reconcile(self.patience), None)
            .await
    }

    fn tell(&self, before: Cycle, now: Cycle) {
        let listener = self.runner.listener();
        if now.mended > 0 {
            listener.alert(&Alert::general(AlertKind::Stuck, now.mended as u64));
        }
        if now.dead > 0 && before.dead == 0 {
            listener.alert(&Alert::general(AlertKind::FirstDeadLetter, now.dead));
        }
    }
}

/// Settings of a [`Reconciler`].
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct ReconcilerBuilder {
    reconciler: Reconciler,
}

impl ReconcilerBuilder {
    /// Sets how long a transaction may stay as it is.
    pub const fn patience(mut self, patience: Patience) -> Self {
        self.reconciler.patience = patience;
        self
    }

    /// Sets how many transactions one cycle mends; 1 000 by default.
    pub const fn limit(mut self, transactions: usize) -> Self {
        self.reconciler.limit = transactions;
        self
    }

    /// Sets how many are mended at a time; 64 by default.
    pub const fn at_once(mut self, transactions: usize) -> Self {
        self.reconciler.at_once = transactions;
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// [`InvalidSetting`] when a number is 0.
    pub fn build(self) -> Result<Reconciler, InvalidSetting> {
        let Reconciler { limit, at_once, .. } = self.reconciler;
        for (setting, value) in [("reconciler.limit", limit), ("reconciler.at_once", at_once)] {
            if value == 0 {
                return Err(InvalidSetting::new(setting, value, "must be at least 1"));
            }
        }
        Ok(self.reconciler)
    }
}
