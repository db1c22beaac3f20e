//! Workers, while they run.

use std::error::Error;
use std::fmt::{self, Display};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::task::JoinError;

use super::Together;

/// Workers that run. Dropped, they are told to stop, and are not waited for.
#[must_use = "dropped, the workers are told to stop and not waited for"]
pub struct Supervised {
    pub(super) tasks: Together<WorkerDied>,
    pub(super) health: Health,
}

/// Which workers work.
#[derive(Clone, Debug)]
pub(super) struct Health(Arc<[(Arc<str>, Arc<AtomicBool>)]>);

impl Health {
    pub(super) fn of(flags: Vec<(Arc<str>, Arc<AtomicBool>)>) -> Self {
        Self(flags.into())
    }
}

impl Supervised {
    /// Tells whether every worker works: none is dead, and what it needs answers.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.down().is_empty()
    }

    /// Returns the names of those that don't.
    #[must_use]
    pub fn down(&self) -> Vec<Arc<str>> {
        let all = self.health.0.iter();
        let down = all.filter(|(_, works)| !works.load(Ordering::Relaxed));
        down.map(|(name, _)| Arc::clone(name)).collect()
    }

    /// Stops and waits: what has begun is ended.
    ///
    /// # Errors
    ///
    /// When they had ended by themselves.
    pub async fn stop(self) -> Result<(), WorkerDied> {
        self.tasks.stop().await
    }

    /// Waits until they end by themselves, because one of them died too often. Dropped, nothing happens.
    ///
    /// # Errors
    ///
    /// Which worker it was, and what of.
    pub async fn ended(&self) -> Result<(), WorkerDied> {
        self.tasks.ended().await
    }
}

impl fmt::Debug for Supervised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Supervised")
            .field("down", &self.down())
            .finish_non_exhaustive()
    }
}

/// A worker died too often, and all ended. The process should end too, for whoever watches it to start it anew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerDied {
    name: Arc<str>,
    why: String,
}

impl WorkerDied {
    pub(super) const fn new(name: Arc<str>, why: String) -> Self {
        Self { name, why }
    }

    /// What watches the workers died itself.
    pub(super) fn lost(error: &JoinError) -> Self {
        Self::new("supervisor".into(), error.to_string())
    }

    /// Returns the name of the worker.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Display for WorkerDied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} died too often: {}", self.name, self.why)
    }
}

impl Error for WorkerDied {}
