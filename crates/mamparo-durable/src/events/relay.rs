//! Takes events from the table to the broker.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use mamparo_core::clock::{self, Instant};
use tokio::time::timeout;

use super::config::RelaySettings;
use super::rounds::{Outcome, Rounds};
use super::{ClaimId, Event, EventStore, Published, Publisher, RelayBuilder, Settlement};
use crate::backend::{BackendError, BoxFuture, Trouble};
use crate::machine::{AlertKind, Utc};
use crate::supervise::{Backoff, Watch, Worker};

/// How often the backlog is told.
const TELL_EVERY: Duration = Duration::from_secs(5);

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
    Done {
        again_in: Option<Duration>,
    },
    /// The broker took none of a round.
    Outage(String),
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

    async fn work(&self, watch: &Watch) -> Result<(), BackendError> {
        let mut backoff = Backoff::default();
        let mut again: Option<Instant> = None;
        let mut told: Option<Instant> = None;
        while !watch.is_stopped() {
            if told.is_none_or(|told| clock::now() - told >= TELL_EVERY) {
                told = Some(clock::now());
                self.tell_backlog(watch).await;
            }
            match self.batch(watch).await {
                Ok(Batch::Done { again_in }) => {
                    watch.works();
                    backoff = Backoff::default();
                    let next = again_in.map(|wait| clock::later(clock::now(), wait));
                    again = again.into_iter().chain(next).min();
                }
                Ok(Batch::Empty) => {
                    watch.works();
                    backoff = Backoff::default();
                    self.wait(watch, &mut again).await;
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

    /// Waits until there may be something, or one that failed is due again, or the backlog is to be told.
    async fn wait(&self, watch: &Watch, again: &mut Option<Instant>) {
        let due = again.map(|again| again.saturating_duration_since(clock::now()));
        let longest = due.unwrap_or(TELL_EVERY).min(self.settings.look_again);
        tokio::select! {
            () = watch.stopped() => {}
            () = self.store.ready(longest.min(TELL_EVERY)) => {}
        }
        if again.is_some_and(|again| again <= clock::now()) {
            *again = None;
        }
    }

    /// Claims some, and publishes them in rounds. What was confirmed is stored while the next round is under way.
    async fn batch(&self, watch: &Watch) -> Result<Batch, BackendError> {
        let RelaySettings { batch, lease, .. } = self.settings;
        let held_from = clock::now();
        let claimed = self.store.claim(batch, lease).await?;
        if claimed.events.is_empty() {
            return Ok(Batch::Empty);
        }
        let held = Held {
            id: claimed.id,
            until: clock::later(held_from, lease),
            watch,
        };
        let (mut rounds, parked) = Rounds::new(claimed.events, self.settings.max_failures);
        self.tell(watch, &parked);
        let mut done = Batch::Done { again_in: None };
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
            done = done.and(outcome);
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
        if outcome.confirmed > 0 {
            let listener = watch.listener();
            listener.published(&self.settings.name, outcome.confirmed);
        }
        for (number, why) in &outcome.parked {
            let detail = format!("event {number}: {why}");
            watch.alert(AlertKind::EventParked, 1, &detail);
        }
    }

    /// Nobody waits for it: what fails is told when events are claimed.
    async fn tell_backlog(&self, watch: &Watch) {
        if let Ok(backlog) = self.store.backlog().await {
            let lag = backlog.lag(Utc::of(&*self.settings.clock));
            watch.listener().backlog(&self.settings.name, &backlog, lag);
        }
    }
}

impl Batch {
    fn and(self, outcome: Outcome) -> Self {
        match (self, outcome) {
            (
                Self::Done { again_in },
                Outcome {
                    outage: None,
                    again_in: next,
                    ..
                },
            ) => Self::Done {
                again_in: again_in.into_iter().chain(next).min(),
            },
            (
                _,
                Outcome {
                    outage: Some(why), ..
                },
            ) => Self::Outage(why),
            (outage, _) => outage,
        }
    }
}

impl Worker for Relay {
    fn name(&self) -> &str {
        &self.settings.name
    }

    fn run(&self, watch: Watch) -> BoxFuture<'_, Result<(), BackendError>> {
        Box::pin(async move { self.work(&watch).await })
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
