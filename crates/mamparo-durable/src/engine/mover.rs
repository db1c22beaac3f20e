//! Moves what an open breaker would postpone one by one.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::{Mutex, mpsc, watch};

use super::Task;
use super::health::Health;
use crate::backend::{BackendError, PostponeDue};
use crate::fail_point::FailPoint;
use crate::handler::{Gatekeeper, Runner};
use crate::machine::{Gate, Label, Terms, Utc};
use crate::supervise::{Backoff, is_stopped, stopped, until_stop};

/// As many are moved in one transaction of the backend, so that others get their turn.
const BATCH: u64 = 5_000;

/// As many dependencies are told apart.
const MAX_DEPENDENCIES: usize = 1_024;

/// A dependency whose breaker is open, and until when.
pub(super) type Open = (Label, Option<Utc>);

/// Asks a gatekeeper, and tells the mover of what is shut.
#[derive(Debug)]
pub(super) struct Watchful {
    pub(super) inner: Arc<dyn Gatekeeper>,
    pub(super) tell: mpsc::Sender<Open>,
}

impl Gatekeeper for Watchful {
    fn gate(&self, terms: &Terms) -> Gate {
        let gate = self.inner.gate(terms);
        if let (Gate::Postpone { until }, Some(dependency)) = (gate, &terms.dependency) {
            // A mover that is busy hears of it with the next fire.
            drop(self.tell.try_send((dependency.clone(), until)));
        }
        gate
    }
}

/// Moves all that is due to a dependency before its breaker lets anything pass.
#[derive(Clone, Debug)]
pub(super) struct Mover {
    pub(super) runner: Runner,
    pub(super) open: Arc<Mutex<mpsc::Receiver<Open>>>,
    pub(super) health: Arc<Health>,
    pub(super) stop: watch::Receiver<bool>,
}

impl Mover {
    /// Works until it is told to stop.
    ///
    /// # Errors
    ///
    /// The backend's, if asking it again can't help.
    pub(super) async fn run(self) -> Result<(), BackendError> {
        let mut moved: HashMap<Label, Utc> = HashMap::new();
        let mut open = self.open.lock().await;
        loop {
            let told = tokio::select! {
                () = stopped(&self.stop) => return Ok(()),
                told = open.recv() => told,
            };
            let Some((dependency, until)) = told else {
                stopped(&self.stop).await;
                return Ok(());
            };
            let now = self.runner.now();
            moved.retain(|_, until| *until > now);
            if moved.contains_key(&dependency) || moved.len() == MAX_DEPENDENCIES {
                continue;
            }
            let until = self.until(&dependency, until, now);
            self.move_all(&dependency, until).await?;
            moved.insert(dependency, until);
        }
    }

    /// When it may be asked again: what it said, or else as long as one that does not say is left alone.
    fn until(&self, dependency: &Label, until: Option<Utc>, now: Utc) -> Utc {
        let policy = self.runner.policies().pick(dependency.as_str(), None, None);
        let longest = now.plus(policy.longest_hint());
        until
            .unwrap_or_else(|| now.plus(policy.postponed().base()))
            .min(longest)
    }

    async fn move_all(&self, dependency: &Label, until: Utc) -> Result<(), BackendError> {
        let Some(outbox) = self.runner.backend().outbox() else {
            return Ok(());
        };
        let spread = self
            .runner
            .policies()
            .pick(dependency.as_str(), None, None)
            .postponed()
            .base();
        let mut failing = Backoff::default();
        while !is_stopped(&self.stop) {
            let now = self.runner.now();
            let due = PostponeDue::new(dependency.clone(), now, until, spread, BATCH);
            match outbox.postpone(due).await {
                Ok(moved) => {
                    FailPoint::Moved.reach();
                    self.health.works(Task::Mover, true);
                    self.runner.listener().postponed(dependency, moved);
                    if moved < BATCH {
                        return Ok(());
                    }
                }
                Err(error) if error.is_transient() => {
                    let listener = self.runner.listener();
                    self.health.backend_fails(Task::Mover, listener, &error);
                    until_stop(&self.stop, failing.next()).await;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
