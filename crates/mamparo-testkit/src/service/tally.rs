//! Counts calls that started, run, ended and were dropped.

use crate::sync::lock;
use mamparo_core::clock::{self, Instant};
use std::sync::{Arc, Mutex};

/// Counts shared by every clone of one service.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally(Arc<Mutex<Counts>>);

#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) starts: Vec<Instant>,
    pub(crate) running: usize,
    pub(crate) max_running: usize,
    pub(crate) finished: usize,
    pub(crate) dropped: usize,
}

impl Tally {
    /// Counts a call that starts now; the guard counts how it ends.
    pub(crate) fn start(&self) -> Running {
        let mut counts = lock(&self.0);
        counts.starts.push(clock::now());
        counts.running += 1;
        counts.max_running = counts.max_running.max(counts.running);
        Running {
            tally: self.clone(),
            finished: false,
        }
    }

    pub(crate) fn read<T>(&self, read: impl FnOnce(&Counts) -> T) -> T {
        read(&lock(&self.0))
    }
}

/// One call that runs. Dropped before it is marked finished, it counts as dropped.
#[derive(Debug)]
pub(crate) struct Running {
    tally: Tally,
    finished: bool,
}

impl Running {
    pub(crate) fn finished(mut self) {
        self.finished = true;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut counts = lock(&self.tally.0);
        counts.running -= 1;
        if self.finished {
            counts.finished += 1;
        } else {
            counts.dropped += 1;
        }
    }
}
