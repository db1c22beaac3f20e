//! The tasks, while they run.

use std::error::Error;
use std::fmt::{self, Display};

use tokio::task::JoinError;

use super::Task;
use crate::supervise::Together;

/// An engine's tasks. Dropped, they are told to stop, and are not waited for.
#[must_use = "dropped, the tasks are told to stop and not waited for"]
pub struct Running {
    pub(super) tasks: Together<EngineError>,
}

impl Running {
    /// Stops and waits: what has begun is let go on for a while, everything else is given back.
    ///
    /// # Errors
    ///
    /// When the engine had ended by itself.
    pub async fn stop(self) -> Result<(), EngineError> {
        self.tasks.stop().await
    }

    /// Waits until the engine ends by itself, because one of its tasks died too often. Dropped, nothing happens.
    ///
    /// # Errors
    ///
    /// Which task it was, and what of.
    pub async fn ended(&self) -> Result<(), EngineError> {
        self.tasks.ended().await
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").finish_non_exhaustive()
    }
}

/// A task died too often, and the engine ended. The process should end too, for whoever watches it to start it anew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineError {
    task: Option<Task>,
    why: String,
}

impl EngineError {
    pub(super) const fn died(task: Task, why: String) -> Self {
        Self {
            task: Some(task),
            why,
        }
    }

    /// What watches a task died itself.
    pub(super) fn lost(error: &JoinError) -> Self {
        Self {
            task: None,
            why: error.to_string(),
        }
    }

    /// Returns the task that died; `None` if it was what watches them.
    #[must_use]
    pub const fn task(&self) -> Option<Task> {
        self.task
    }
}

impl Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let task = self.task.map_or("watch", Task::as_str);
        write!(f, "the task {task} died too often: {}", self.why)
    }
}

impl Error for EngineError {}
