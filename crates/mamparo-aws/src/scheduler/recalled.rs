//! Schedules that were deleted when their fire was in the queue already.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mamparo_core::clock::{self, Instant};
use mamparo_durable::backend::Message;
use mamparo_durable::machine::schedule_name;

/// As many are remembered, the latest.
const MOST: usize = 4_096;

/// As long as one is: a fire that lies in the queue is due within a minute.
const REMEMBERED: Duration = Duration::from_secs(120);

/// Their names. SQS takes no message back, so whoever takes such a fire drops it; in another process handler B does, for
/// its transaction has moved on.
#[derive(Debug, Default)]
pub(crate) struct Recalled(Mutex<VecDeque<(String, Instant)>>);

impl Recalled {
    pub(super) fn add(&self, name: String) {
        let mut names = self.names();
        let now = clock::now();
        while names.front().is_some_and(|(_, at)| now - *at > REMEMBERED) {
            names.pop_front();
        }
        if names.len() == MOST {
            names.pop_front();
        }
        names.push_back((name, now));
    }

    /// Forgets a schedule that is made again.
    pub(super) fn forget(&self, name: &str) {
        self.names().retain(|(recalled, _)| recalled != name);
    }

    /// Tells whether the schedule of this fire was deleted.
    pub(crate) fn has(&self, message: &Message) -> bool {
        let Message::Fire { id, attempt, seq } = message else {
            return false;
        };
        let names = self.names();
        !names.is_empty() && {
            let name = schedule_name(id, *attempt, *seq);
            names.iter().any(|(recalled, _)| *recalled == name)
        }
    }

    fn names(&self) -> MutexGuard<'_, VecDeque<(String, Instant)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
