//! Where tasks of this process wait.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};

use mamparo_durable::backend::QueueName;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use super::Ready;

/// Wakes those who wait for a queue, and keeps what others are to be told.
#[derive(Debug)]
pub(crate) struct Wake {
    queues: [Waiters; 3],
    untold: Mutex<Ready>,
    telling: Notify,
    /// Our own notifications come back to us.
    sender: u64,
}

#[derive(Debug)]
struct Waiters {
    changed: Notify,
    /// Until when those who wait sleep: what is ready later than this finds one of them awake.
    until: AtomicI64,
}

/// As long as it is not known how long who waits will sleep, every change wakes.
const EVERY_CHANGE: i64 = i64::MAX;

impl Default for Waiters {
    fn default() -> Self {
        Self {
            changed: Notify::new(),
            until: AtomicI64::new(EVERY_CHANGE),
        }
    }
}

/// Somebody sleeps until a known instant.
#[derive(Debug)]
pub(crate) struct Sleeping<'a>(&'a AtomicI64);

impl Drop for Sleeping<'_> {
    fn drop(&mut self) {
        self.0.store(EVERY_CHANGE, Ordering::Relaxed);
    }
}

impl Wake {
    pub(crate) fn new() -> Self {
        Self {
            queues: Default::default(),
            untold: Mutex::default(),
            telling: Notify::new(),
            sender: fastrand::u64(..),
        }
    }

    /// Something was committed: whoever waits for it looks, and others are told.
    pub(crate) fn written(&self, ready: &Ready) {
        if ready.is_never() {
            return;
        }
        self.heard(*ready);
        let mut untold = self.untold.lock().unwrap_or_else(PoisonError::into_inner);
        *untold = untold.and(*ready);
        drop(untold);
        self.telling.notify_one();
    }

    /// There may be something: wakes those who would sleep past it.
    fn heard(&self, ready: Ready) {
        for queue in QueueName::ALL {
            let Waiters { changed, until } = &self.queues[queue as usize];
            if ready
                .before(until.load(Ordering::Relaxed))
                .any(|(name, _)| name == queue)
            {
                changed.notify_waiters();
            }
        }
    }

    /// Another engine tells something; nothing where that may have been lost.
    pub(crate) fn told(&self, payload: Option<&str>) {
        match payload.map(Ready::from_text) {
            None => self.wake_all(),
            Some((sender, ready)) if sender != self.sender => self.heard(ready),
            Some(_) => {}
        }
    }

    /// Notifications may have been lost.
    fn wake_all(&self) {
        self.queues
            .iter()
            .for_each(|waiters| waiters.changed.notify_waiters());
    }

    /// Hears of what changes from its first poll on, or from when it is enabled.
    pub(crate) fn changed(&self, queue: QueueName) -> Notified<'_> {
        let waiters = &self.queues[queue as usize];
        waiters.until.store(EVERY_CHANGE, Ordering::Relaxed);
        waiters.changed.notified()
    }

    /// Those who wait sleep until then, or until what is returned is dropped.
    pub(crate) fn sleeps_until(&self, queue: QueueName, millis: i64) -> Sleeping<'_> {
        let until = &self.queues[queue as usize].until;
        until.store(millis, Ordering::Relaxed);
        Sleeping(until)
    }

    /// Waits until there is something to tell, and takes it.
    pub(super) async fn untold(&self) -> Ready {
        self.telling.notified().await;
        let mut untold = self.untold.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *untold)
    }

    pub(super) const fn sender(&self) -> u64 {
        self.sender
    }
}
