//! Takes events from the table to the broker.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use mamparo_core::clock::{self, Instant};
use tokio::sync::Notify;
use tokio::time::timeout;

use super::config::RelaySettings;
use super::rounds::{Outcome, Rounds};
use super::{ClaimId, Event, EventStore, Published, Publisher, RelayBuilder, Settlement};
use crate::backend::{BackendError, BoxFuture, Trouble};
use crate::machine::{AlertKind, Utc};
use crate::supervise::{Backoff, Watch, Worker};

/// How often the backlog is told.
const TELL_EVERY: Duration = Duration::from_secs(5);

/// What no notification tells of is found after so long at last.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// Publishes the events of a store, each after those of its key that were put before it; a [`Worker`].
///
/// An event is removed when its publisher has confirmed it. Where the relay dies between the two, the event is published again:
/// at least once, under the same id, by which the consumer's inbox knows it. Any number of relays share a store.
pub struct Relay {
    store: Arc<dyn EventStore>,
    publisher: Arc<dyn Publisher>,
    settings: RelaySettings,
}

/// What a claim came to.
enum Batch {
    Empty,
    Done,
    /// The broker took none of a round.
    Outage(String),
}

/// What the two that claim tell each other.
#[derive(Default)]
struct Shared {
    /// When the first of those that failed is due again.
    again: Mutex<Option<Instant>>,
    /// A claim took as many as it may, so that there may be more.
    more: Notify,
}

/// A claim, while it lasts.
struct Held<'a> {
    id: ClaimId,
    until: Instant,
    watch: &'a Watch,
}

impl Relay {
    /// Starts from a name, such as `orders`, a store, a publisher and the defaults.
    pub fn builder(
        name: impl Into<String>,
        store: Arc<dyn EventStore>,
        publisher: Arc<dyn Publisher>,
    ) -> RelayBuilder {
        RelayBuilder::new(name.into(), store, publisher)
    }

    pub(super) fn with(
        store: Arc<dyn EventStore>,
        publisher: Arc<dyn Publisher>,
        settings: RelaySettings,
    ) -> Self {
        Self {
            store,
            publisher,
            settings,
        }
    }

    async fn work(&self, watch: &Watch, shared: &Shared) -> Result<(), BackendError> {
        let mut backoff = Backoff::default();
        while !watch.is_stopped() {
            match self.batch(watch, shared).await {
                Ok(Batch::Done) => {
                    watch.works();
                    backoff = Backoff::default();
                }
                Ok(Batch::Empty) => {
                    watch.works();
                    backoff = Backoff::default();
                    self.wait(watch, shared).await;
                }
                Ok(Batch::Outage(why)) => {
                    let message = format!("nothing is published; it is tried again ({why})");
                    watch.fails(&BackendError::new(Trouble::Unavailable, message));
                    watch.pause(backoff.next()).await;
                }
                Err(error) if error.is_transient() => {
                    watch.fails(&error);
                    watch.pause(backoff.next()).await;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Claims others while a full claim is under way: so one is at the database while the broker has the other's.
    async fn help(&self, watch: &Watch, shared: &Shared) -> Result<(), BackendError> {
        while !watch.is_stopped() {
            tokio::select! {
                () = watch.stopped() => {}
                () = shared.more.notified() => match self.batch(watch, shared).await {
                    // What is wrong, the other meets as well; it tells, and waits.
                    Err(error) if !error.is_transient() => return Err(error),
                    Ok(_) | Err(_) => {}
                }
            }
        }
        Ok(())
    }

    /// Waits until there may be something, or one that failed is due again.
    async fn wait(&self, watch: &Watch, shared: &Shared) {
        let due = shared.again_in();
        let longest = due.unwrap_or(LONGEST_WAIT).min(self.settings.look_again);
        tokio::select! {
            () = watch.stopped() => {}
            () = self.store.ready(longest.min(LONGEST_WAIT)) => {}
        }
    }

    /// Claims some, and publishes them in rounds. What was confirmed is stored while the next round is under way.
    async fn batch(&self, watch: &Watch, shared: &Shared) -> Result<Batch, BackendError> {
        let RelaySettings { batch, lease, .. } = self.settings;
        let held_from = clock::now();
        let claimed = self.store.claim(batch, lease).await?;
        match claimed.events.len() {
            0 => return Ok(Batch::Empty),
            taken if taken >= batch => shared.more.notify_one(),
            _ => {}
        }
        let held = Held {
            id: claimed.id,
            until: clock::later(held_from, lease),
            watch,
        };
        let (mut rounds, parked) = Rounds::new(claimed.events, self.settings.max_failures);
        self.tell(watch, &parked);
        let mut done = Batch::Done;
        loop {
            let round = rounds.next();
            let settled = rounds.settled();
            let (results, lost) = tokio::join!(self.publish(&round), self.settle(&held, settled));
            let lost = lost?;
            if round.is_empty() {
                return Ok(done);
            }
            let outcome = rounds.heard(results);
            self.tell(watch, &outcome);
            let enough = clock::later(clock::now(), self.settings.publish_timeout);
            if outcome.outage.is_some() || lost || watch.is_stopped() || enough >= held.until {
                rounds.give_back();
            }
            shared.again_after(outcome.again_in);
            if let Some(why) = outcome.outage {
                done = Batch::Outage(why);
            }
        }
    }

    /// Returns what became of each. One that is never heard of takes nothing from what was confirmed.
    async fn publish(&self, round: &[Event]) -> Vec<Published> {
        let limit = self.settings.publish_timeout;
        let each = round.iter().map(async |event: &Event| {
            let published = timeout(limit, self.publisher.publish(event)).await;
            published
                .unwrap_or_else(|_| Published::NotNow(format!("not confirmed within {limit:?}")))
        });
        join_all(each).await
    }

    /// Stores what became of some, as long as they are ours: what is not stored is published twice. Returns whether any was lost.
    async fn settle(
        &self,
        held: &Held<'_>,
        settled: Vec<(i64, Settlement)>,
    ) -> Result<bool, BackendError> {
        if settled.is_empty() {
            return Ok(false);
        }
        let mut backoff = Backoff::default();
        loop {
            match self.store.settle(held.id, settled.clone()).await {
                Ok(lost) => return Ok(lost > 0),
                Err(error) if error.is_transient() && clock::now() < held.until => {
                    held.watch.fails(&error);
                    if held.watch.is_stopped() {
                        return Err(error);
                    }
                    held.watch.pause(backoff.next()).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn tell(&self, watch: &Watch, outcome: &Outcome) {
        let (listener, name) = (watch.listener(), &*self.settings.name);
        if outcome.confirmed > 0 {
            listener.published(name, outcome.confirmed);
        }
        if outcome.unconfirmed > 0 {
            listener.unconfirmed(name, outcome.unconfirmed);
        }
        for (number, why) in &outcome.parked {
            let detail = format!("event {number}: {why}");
            watch.alert(AlertKind::EventParked, 1, &detail);
        }
    }

    /// Tells it beside the work, however long a batch takes. That the store does not say is told when events are claimed.
    async fn keep_telling(&self, watch: &Watch) -> Result<(), BackendError> {
        loop {
            if let Ok(backlog) = self.store.backlog().await {
                let lag = backlog.lag(Utc::of(&*self.settings.clock));
                watch.listener().backlog(&self.settings.name, &backlog, lag);
            }
            tokio::time::sleep(TELL_EVERY).await;
        }
    }
}

impl Shared {
    fn again_after(&self, wait: Option<Duration>) {
        let next = wait.map(|wait| clock::later(clock::now(), wait));
        let mut again = self.again.lock().unwrap_or_else(PoisonError::into_inner);
        *again = again.into_iter().chain(next).min();
    }

    /// In how long, from now; an instant that has come is told once.
    fn again_in(&self) -> Option<Duration> {
        let mut again = self.again.lock().unwrap_or_else(PoisonError::into_inner);
        let wait = again.map(|again| again.saturating_duration_since(clock::now()));
        again.take_if(|_| wait == Some(Duration::ZERO));
        wait
    }
}

impl Worker for Relay {
    fn name(&self) -> &str {
        &self.settings.name
    }

    fn run(&self, watch: Watch) -> BoxFuture<'_, Result<(), BackendError>> {
        Box::pin(async move {
            let shared = Shared::default();
            let both = async {
                tokio::try_join!(self.work(&watch, &shared), self.help(&watch, &shared))?;
                Ok(())
            };
            tokio::select! {
                ended = both => ended,
                ended = self.keep_telling(&watch) => ended,
            }
        })
    }
}

impl fmt::Debug for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Relay")
            .field("name", &self.settings.name)
            .field("store", &self.store)
            .field("publisher", &self.publisher)
            .finish_non_exhaustive()
    }
}
