//! Who waits for a queue, and until when there is nothing in it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mamparo_core::clock::{self, WallClock};
use mamparo_durable::backend::QueueName;
use mamparo_durable::machine::Utc;
use tokio::sync::Notify;

/// One for each queue.
#[derive(Debug, Default)]
pub(super) struct Wakes {
    queues: [Wake; 3],
}

impl Wakes {
    pub(super) const fn of(&self, queue: QueueName) -> &Wake {
        let [answers, fires, requests] = &self.queues;
        match queue {
            QueueName::Answers => answers,
            QueueName::Fires => fires,
            QueueName::Requests => requests,
        }
    }
}

/// Knows from when on something can be taken, so that nobody has to ask the file.
///
/// It may be too early, and whoever takes then finds nothing; it is never too late for what this process has written.
#[derive(Debug)]
pub(super) struct Wake {
    earlier: Notify,
    next: Mutex<Next>,
}

#[derive(Clone, Copy, Debug)]
struct Next {
    at: Utc,
    /// How often it was told of something that becomes ready.
    told: u64,
}

/// How often it had been told when the file was asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Told(u64);

impl Default for Wake {
    /// What is in the file when it is opened may be ready.
    fn default() -> Self {
        let next = Next {
            at: Utc::MIN,
            told: 0,
        };
        Self {
            earlier: Notify::new(),
            next: Mutex::new(next),
        }
    }
}

impl Wake {
    /// Something becomes ready at that instant. Called on the thread that writes, before the commit: whoever is woken takes on that
    /// thread too, and so after it.
    pub(super) fn tell(&self, at: Utc) {
        let mut next = self.next();
        next.told += 1;
        if at < next.at {
            next.at = at;
            drop(next);
            self.earlier.notify_waiters();
        }
    }

    /// Called on the thread that writes, when the file is asked what is next.
    pub(super) fn asked(&self) -> Told {
        Told(self.next().told)
    }

    /// The file said what is next; called after the commit, since only then it is true.
    pub(super) fn heard(&self, told: Told, at: Option<Utc>) {
        let mut next = self.next();
        let at = at.unwrap_or(Utc::MAX);
        next.at = if next.told == told.0 {
            at
        } else {
            at.min(next.at)
        };
    }

    /// Waits until something may be ready, and no longer than `longest`.
    pub(super) async fn ready(&self, clock: &dyn WallClock, longest: Duration) {
        let look_again = clock::later(clock::now(), longest);
        loop {
            let earlier = self.earlier.notified();
            tokio::pin!(earlier);
            // From here on it is heard, also if it comes before the first poll.
            earlier.as_mut().enable();
            let wait = self.next().at.since(Utc::of(clock));
            if wait.is_zero() || clock::now() >= look_again {
                return;
            }
            let until = clock::later(clock::now(), wait).min(look_again);
            tokio::select! {
                () = earlier => {}
                () = tokio::time::sleep_until(until) => {}
            }
        }
    }

    fn next(&self) -> MutexGuard<'_, Next> {
        self.next.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
