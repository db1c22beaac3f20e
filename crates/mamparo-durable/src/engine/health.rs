//! Which tasks work.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::handler::Listener;
use crate::machine::{Alert, AlertKind};

/// A task of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Task {
    /// Handles answers.
    Answers,
    /// Handles what is due.
    Fires,
    /// Sends requests.
    Requests,
    /// Finds what is stuck.
    Reconciler,
    /// Moves what an open breaker postpones.
    Mover,
    /// Forgets what ended long ago.
    Sweeper,
}

impl Task {
    /// Every task.
    pub const ALL: [Self; 6] = [
        Self::Answers,
        Self::Fires,
        Self::Requests,
        Self::Reconciler,
        Self::Mover,
        Self::Sweeper,
    ];

    /// Returns the name used in alerts and logs: lower case, stable.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Answers => "answers",
            Self::Fires => "fires",
            Self::Requests => "requests",
            Self::Reconciler => "reconciler",
            Self::Mover => "mover",
            Self::Sweeper => "sweeper",
        }
    }
}

/// Which tasks work; those that do not run count as working.
#[derive(Debug, Default)]
pub(super) struct Health {
    down: [AtomicBool; Task::ALL.len()],
}

impl Health {
    /// Returns whether it worked until now.
    pub(super) fn fails(&self, task: Task) -> bool {
        !self.flag(task).swap(true, Ordering::Relaxed)
    }

    pub(super) fn works(&self, task: Task, does: bool) {
        self.flag(task).store(!does, Ordering::Relaxed);
    }

    pub(super) fn is_ready(&self) -> bool {
        self.down().is_empty()
    }

    pub(super) fn down(&self) -> Vec<Task> {
        let down = |task: &Task| self.flag(*task).load(Ordering::Relaxed);
        Task::ALL.into_iter().filter(down).collect()
    }

    /// The backend failed a task; a person hears of it once, until it works again.
    pub(super) fn backend_fails(
        &self,
        task: Task,
        listener: &dyn Listener,
        error: &(dyn std::error::Error + 'static),
    ) {
        if self.fails(task) {
            let alert = Alert::general(AlertKind::BackendFails, 1);
            listener.alert(&alert.with_detail(format!("{}: {error}", task.as_str()).as_str()));
        }
    }

    fn flag(&self, task: Task) -> &AtomicBool {
        &self.down[task as usize]
    }
}
