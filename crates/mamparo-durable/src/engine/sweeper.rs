//! Forgets what ended long ago.

use std::sync::Arc;
use std::time::Duration;

use mamparo_core::clock;
use tokio::sync::watch;

use super::Task;
use super::health::Health;
use crate::backend::BackendError;
use crate::handler::Runner;
use crate::supervise::{Backoff, about, is_stopped, stopped, until_stop};

/// How often it is looked, unless transactions are kept for a shorter time.
const EVERY: Duration = Duration::from_secs(3_600);

/// As many are forgotten in one write: milliseconds, for which others wait.
const BATCH: usize = 200;

/// After a write, the others have the store for so many times as long as it took, and at least for this.
const SHARE: (u32, Duration) = (4, Duration::from_millis(10));

/// Forgets transactions some time after their end.
#[derive(Clone, Debug)]
pub(super) struct Sweeper {
    pub(super) runner: Runner,
    /// For how long they are kept; for ever, if it is not said.
    pub(super) keep: Option<Duration>,
    pub(super) health: Arc<Health>,
    pub(super) stop: watch::Receiver<bool>,
}

impl Sweeper {
    /// Works until it is told to stop.
    ///
    /// # Errors
    ///
    /// The backend's, if asking it again can't help.
    pub(super) async fn run(self) -> Result<(), BackendError> {
        let Some(keep) = self.keep else {
            stopped(&self.stop).await;
            return Ok(());
        };
        let mut failing = Backoff::default();
        while !is_stopped(&self.stop) {
            let pause = match self.sweep(keep).await {
                Ok(()) => {
                    self.health.works(Task::Sweeper, true);
                    failing = Backoff::default();
                    about(EVERY.min(keep))
                }
                Err(error) if error.is_transient() => {
                    let listener = self.runner.listener();
                    (self.health).backend_fails(Task::Sweeper, listener, &error);
                    failing.next()
                }
                Err(error) => return Err(error),
            };
            until_stop(&self.stop, pause).await;
        }
        Ok(())
    }

    /// Forgets all that is past its time, a few at once.
    async fn sweep(&self, keep: Duration) -> Result<(), BackendError> {
        while !is_stopped(&self.stop) {
            let began = clock::now();
            let ended_by = self.runner.now().minus(keep);
            let store = self.runner.backend().store();
            let forgotten = store.forget(ended_by, BATCH).await?;
            if forgotten > 0 {
                self.runner.listener().forgotten(forgotten);
            }
            if forgotten < BATCH as u64 {
                break;
            }
            let took = clock::now() - began;
            until_stop(&self.stop, (took * SHARE.0).max(SHARE.1)).await;
        }
        Ok(())
    }
}
