//! The reconciler's rounds.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::Task;
use super::health::Health;
use super::turns::Turns;
use crate::backend::BackendError;
use crate::handler::{Cycle, Listener, Reconciler};
use crate::supervise::{about, is_stopped, until_stop};

/// What waits for its turn is not lost: while there are more than pass, it is fired or sent again no sooner.
const WHILE_FULL: Duration = Duration::from_secs(3_600);

/// Runs a cycle of the reconciler every so often.
#[derive(Clone, Debug)]
pub(super) struct Rounds {
    pub(super) reconciler: Reconciler,
    /// What is waited for before something is handled.
    pub(super) turns: Vec<Turns>,
    pub(super) every: Duration,
    pub(super) health: Arc<Health>,
    pub(super) listener: Arc<dyn Listener>,
    pub(super) stop: watch::Receiver<bool>,
}

impl Rounds {
    /// Works until it is told to stop.
    ///
    /// # Errors
    ///
    /// The backend's, if asking it again can't help.
    pub(super) async fn run(self) -> Result<(), BackendError> {
        let mut last = Cycle::default();
        while !is_stopped(&self.stop) {
            match self.reconciler().cycle(last).await {
                Ok(cycle) => {
                    self.health.works(Task::Reconciler, true);
                    last = cycle;
                }
                Err(error) if error.is_transient() => {
                    self.health
                        .backend_fails(Task::Reconciler, &*self.listener, &error);
                }
                Err(error) => return Err(error),
            }
            until_stop(&self.stop, about(self.every)).await;
        }
        Ok(())
    }

    fn reconciler(&self) -> Cow<'_, Reconciler> {
        if self.turns.iter().any(Turns::are_full) {
            Cow::Owned(self.reconciler.clone().no_sooner(WHILE_FULL))
        } else {
            Cow::Borrowed(&self.reconciler)
        }
    }
}
