//! Schedules that were deleted when their fire was in the queue already.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mamparo_core::clock::{self, Instant};
use mamparo_durable::backend::Message;
use mamparo_durable::machine::{Utc, schedule_name};

/// As many of each kind are remembered, the latest.
const MOST: usize = 4_096;

/// As long as one is after it was deleted: whoever takes its fire later finds that the transaction has moved on.
const REMEMBERED: Duration = Duration::from_secs(1_200);

/// Fires that went straight to the queue, and the names of those that are not to be delivered.
///
/// SQS takes no message back, so whoever takes such a fire drops it; in another process handler B does, for its transaction has
/// moved on.
#[derive(Debug, Default)]
pub(crate) struct Recalled(Mutex<Names>);

#[derive(Debug, Default)]
struct Names {
    /// What this process has sent, and when it is due.
    sent: VecDeque<(String, Utc)>,
    deleted: VecDeque<Deleted>,
}

#[derive(Debug)]
struct Deleted {
    name: String,
    at: Instant,
    /// Of what this process has sent.
    due: Option<Utc>,
}

impl Recalled {
    /// Notes a fire that was sent.
    pub(super) fn sent(&self, name: String, due: Utc) {
        let mut names = self.names();
        if names.sent.len() == MOST {
            names.sent.pop_front();
        }
        names.sent.push_back((name, due));
    }

    /// Notes a schedule that was deleted, and was none any more, or never one.
    pub(super) fn add(&self, name: String) {
        let (mut names, now) = (self.names(), clock::now());
        let old = |it: &Deleted| now - it.at > REMEMBERED;
        while names.deleted.len() == MOST || names.deleted.front().is_some_and(old) {
            names.deleted.pop_front();
        }
        let place = names.sent.iter().position(|(sent, _)| *sent == name);
        let sent = place.and_then(|place| names.sent.remove(place));
        let (at, due) = (now, sent.map(|(_, due)| due));
        names.deleted.push_back(Deleted { name, at, due });
    }

    /// Forgets a schedule that is made again.
    pub(super) fn forget(&self, name: &str) {
        self.names().deleted.retain(|it| it.name != name);
    }

    /// Tells whether the schedule of this fire was deleted.
    pub(crate) fn has(&self, message: &Message) -> bool {
        let Message::Fire { id, attempt, seq } = message else {
            return false;
        };
        let names = self.names();
        !names.deleted.is_empty() && {
            let name = schedule_name(id, *attempt, *seq);
            names.deleted.iter().any(|it| it.name == name)
        }
    }

    /// Counts those that are known to lie in the queue until they are due, and are nobody's.
    pub(crate) fn waiting(&self, now: Utc) -> u64 {
        let names = self.names();
        let waits = |it: &&Deleted| it.due.is_some_and(|due| due > now);
        names.deleted.iter().filter(waits).count() as u64
    }

    fn names(&self) -> MutexGuard<'_, Names> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
