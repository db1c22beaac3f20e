//! Looks for sagas that wait for an event that does not come.

use std::collections::HashSet;
use std::fmt::{self, Debug};
use std::sync::Arc;
use std::time::Duration;

use mamparo_core::InvalidSetting;

use crate::backend::{BackendError, BoxFuture};
use crate::machine::AlertKind;
use crate::supervise::{Watch, Worker, about};

/// The most that one transaction compensates.
const LARGEST_BATCH: usize = 10_000;

/// Of those that failed, as many times the limit are asked for again beside it: all of them may, and a transaction stays small.
const MOST_AGAIN: usize = 3;

/// As many cycles follow one another at once: then a pause, whatever waits.
const AT_ONCE: u32 = 100;

/// As long as the time between two cycles may be.
const LONGEST_PAUSE: Duration = Duration::from_secs(86_400);

/// Finds stuck sagas and compensates them, all in one transaction of the database where they are kept.
///
/// The backends make one of a statement and a closure.
pub trait StuckSagas: Debug + Send + Sync + 'static {
    /// Selects at most `limit`, skipping those that another transaction has locked, changes the state of each and puts its event.
    ///
    /// One that can't be compensated is left as it was, and stops no other. Called again, it finds those that are stuck still.
    fn compensate(&self, limit: usize) -> BoxFuture<'_, Result<Compensated, BackendError>>;
}

/// What a transaction of a watchdog came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Compensated {
    /// How many were compensated.
    pub done: usize,
    /// Those that were not, each with the reason.
    pub failed: Vec<(String, String)>,
}

/// Compensates stuck sagas every so often; a [`Worker`]. Any number of replicas run it.
///
/// A cycle that fails is told, and the next one runs. A cycle that finds as many as it may take is followed by another at once, as long
/// as more of them are compensated than not, and up to a hundred times. Those that fail are asked for beside the others next time, so
/// that they keep none from its turn.
pub struct Watchdog {
    name: String,
    sagas: Arc<dyn StuckSagas>,
    every: Duration,
    limit: usize,
}

impl Watchdog {
    /// Starts from a name, such as `payment-timeout`, what finds stuck sagas, and the defaults: every 60 s, 100 a transaction.
    pub fn builder(name: impl Into<String>, sagas: Arc<dyn StuckSagas>) -> WatchdogBuilder {
        WatchdogBuilder(Self {
            name: name.into(),
            sagas,
            every: Duration::from_secs(60),
            limit: 100,
        })
    }

    async fn work(&self, watch: &Watch) -> Result<(), BackendError> {
        let mut failing = HashSet::new();
        while !watch.is_stopped() {
            self.catch_up(watch, &mut failing).await;
            watch.pause(about(self.every)).await;
        }
        Ok(())
    }

    /// Goes on at once as long as that is of use. What fails again meanwhile is not told again.
    async fn catch_up(&self, watch: &Watch, failing: &mut HashSet<String>) {
        let mut told = HashSet::new();
        for _ in 0..AT_ONCE {
            let asked = LARGEST_BATCH.min(self.limit + failing.len().min(MOST_AGAIN * self.limit));
            let compensated = match self.sagas.compensate(asked).await {
                Ok(compensated) => compensated,
                // Also where its statement is wrong: it is told, and the next cycle runs.
                Err(error) => return watch.fails(&error),
            };
            watch.works();
            let Compensated { done, failed } = compensated;
            let more = done > failed.len() && done + failed.len() >= asked;
            self.tell(watch, done, &failed, &told);
            *failing = failed.into_iter().map(|(saga, _)| saga).collect();
            if !more || watch.is_stopped() {
                return;
            }
            told.extend(failing.iter().cloned());
        }
    }

    fn tell(
        &self,
        watch: &Watch,
        done: usize,
        failed: &[(String, String)],
        told: &HashSet<String>,
    ) {
        if done > 0 {
            let done = u64::try_from(done).unwrap_or(u64::MAX);
            watch.listener().compensated(&self.name, done);
        }
        for (saga, why) in failed {
            if !told.contains(saga) {
                watch.alert(AlertKind::Uncompensated, 1, &format!("{saga}: {why}"));
            }
        }
    }
}

/// Makes a [`Watchdog`].
#[derive(Debug)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct WatchdogBuilder(Watchdog);

impl WatchdogBuilder {
    /// Sets how often it looks, each time a tenth sooner or later; 60 s by default.
    pub const fn every(mut self, pause: Duration) -> Self {
        self.0.every = pause;
        self
    }

    /// Sets how many one transaction compensates at most, 100 by default.
    ///
    /// Those that failed in the last one are asked for beside them, three times as many at most.
    pub const fn limit(mut self, sagas: usize) -> Self {
        self.0.limit = sagas;
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// [`InvalidSetting`] when a number or a duration is out of its bounds.
    pub fn build(self) -> Result<Watchdog, InvalidSetting> {
        pause(self.0.every)?;
        if !(1..=LARGEST_BATCH).contains(&self.0.limit) {
            let reason = "must be from 1 to 10000";
            return Err(InvalidSetting::new("limit", self.0.limit, reason));
        }
        Ok(self.0)
    }
}

/// Checks the time between two cycles.
pub(super) fn pause(every: Duration) -> Result<(), InvalidSetting> {
    if every < Duration::from_millis(10) || every > LONGEST_PAUSE {
        let reason = "must be from 10 ms to 1 day";
        return Err(InvalidSetting::new("every", format!("{every:?}"), reason));
    }
    Ok(())
}

impl Worker for Watchdog {
    fn name(&self) -> &str {
        &self.name
    }

    fn run(&self, watch: Watch) -> BoxFuture<'_, Result<(), BackendError>> {
        Box::pin(async move { self.work(&watch).await })
    }
}

impl Debug for Watchdog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watchdog")
            .field("name", &self.name)
            .field("sagas", &self.sagas)
            .finish_non_exhaustive()
    }
}
