//! What happens, written once for all who read it.
//!
//! A task follows the breakers and the reloads, and takes a snapshot now and then, while there is a stream, and ends
//! soon after the last. Each stream reads the same bytes: from a ring of events, of which a slow reader misses the oldest, and
//! from a place for the newest snapshot, since nobody needs an older one.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use mamparo_core::clock::{self, SystemClock, WallClock};
use serde_json::{Value, json};
use tokio::select;
use tokio::sync::{Semaphore, broadcast, watch};
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};

use super::config::Streams;
use super::followed::{Changed, Followed};
use super::stream::Stream;
use crate::policy::{Policies, Reloads};

/// What all streams read from.
#[derive(Debug)]
pub(super) struct Feed {
    policies: Policies,
    settings: Streams,
    events: broadcast::Sender<Bytes>,
    snapshots: watch::Sender<Bytes>,
    places: Arc<Semaphore>,
    /// The task, once there was a stream. Locked while one begins, and while the task decides whether to end.
    task: Mutex<Option<JoinHandle<()>>>,
}

impl Feed {
    pub(super) fn new(policies: Policies, settings: Streams) -> Self {
        Self {
            policies,
            settings,
            events: broadcast::Sender::new(settings.events),
            snapshots: watch::Sender::new(Bytes::new()),
            places: Arc::new(Semaphore::new(settings.most)),
            task: Mutex::new(None),
        }
    }

    /// Begins one more stream, unless there are as many as there may be.
    pub(super) fn stream(self: &Arc<Self>) -> Option<Stream> {
        let place = Arc::clone(&self.places).try_acquire_owned().ok()?;
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        let (events, snapshots) = (self.events.subscribe(), self.snapshots.subscribe());
        // It may have gone with its runtime.
        if task.as_ref().is_none_or(JoinHandle::is_finished) {
            // Followed from here on, and not only once the task runs: what happens until then is told.
            let (followed, reloads) = (Followed::new(&self.policies), self.policies.reloads());
            *task = Some(tokio::spawn(Arc::clone(self).run(followed, reloads)));
        }
        drop(task);
        // Taken after the stream began to listen: what happens in between is in both, and not in neither.
        let first = self.snapshot();
        Some(Stream::new(self.settings, first, events, snapshots, place))
    }

    async fn run(self: Arc<Self>, mut followed: Followed, mut reloads: watch::Receiver<Reloads>) {
        let mut ticks = interval(self.settings.snapshot_every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks.tick().await; // a stream begins with a snapshot of its own
        loop {
            select! {
                changed = followed.next() => changed.iter().for_each(|it| self.tell("breaker", &change(it))),
                Ok(()) = reloads.changed() => {
                    let told = reload(*reloads.borrow_and_update());
                    self.tell("reload", &told);
                    followed.renew(&self.policies);
                    self.snapshots.send_replace(self.snapshot());
                }
                _ = ticks.tick() => {
                    if self.is_over() {
                        return;
                    }
                    self.snapshots.send_replace(self.snapshot());
                }
            }
        }
    }

    /// Ends the task where nobody reads any more; whoever comes next begins another.
    fn is_over(&self) -> bool {
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        let over = self.events.receiver_count() == 0;
        if over {
            *task = None;
        }
        over
    }

    fn tell(&self, name: &str, data: &Value) {
        // An error is that nobody reads.
        let _nobody = self.events.send(event(name, &data.to_string()));
    }

    fn snapshot(&self) -> Bytes {
        // Nothing of a snapshot can't be written.
        let json = serde_json::to_string(&self.policies.snapshot()).unwrap_or_default();
        event("snapshot", &json)
    }
}

/// One event; JSON has no line breaks of its own.
pub(super) fn event(name: &str, json: &str) -> Bytes {
    format!("event: {name}\ndata: {json}\n\n").into()
}

fn change(changed: &Changed) -> Value {
    let Changed {
        dependency,
        observes,
        transition,
    } = changed;
    let ago = clock::now().saturating_duration_since(transition.at);
    let now = SystemClock.now();
    let at = humantime::format_rfc3339_millis(now.checked_sub(ago).unwrap_or(now));
    json!({
        "at": at.to_string(),
        "dependency": dependency,
        "observes": observes,
        "from": transition.from.as_str(),
        "to": transition.to.map(mamparo_core::breaker::BreakerState::as_str),
        "cause": transition.cause.as_str(),
        "failure_rate": transition.rates.failure_rate(),
        "slow_rate": transition.rates.slow_rate(),
        "calls": transition.rates.calls,
        "openings": transition.openings,
        "wait_ms": transition.wait.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
    })
}

fn reload(reloads: Reloads) -> Value {
    json!({
        "at": humantime::format_rfc3339_millis(SystemClock.now()).to_string(),
        "accepted": reloads.refused_with.is_none(),
        "problems": reloads.refused_with.unwrap_or_default(),
    })
}
