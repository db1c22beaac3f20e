//! What is stored, looked at every so often and read when metrics are collected.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mamparo_core::InvalidSetting;
use mamparo_durable::backend::QueueName;
use mamparo_durable::engine::{Engine, Status};
use mamparo_durable::machine::State;
use opentelemetry::KeyValue;
use opentelemetry::metrics::{AsyncInstrument, Meter};
use tokio::task::JoinHandle;

use crate::Metrics;
use crate::metrics::Metric;
use crate::metrics::deferred::{DEAD_LETTERS, OLDEST, OVERDUE, OVERDUE_AGE, TRANSACTIONS};
use crate::semconv::{DEFER_ATTEMPT, DEFER_QUEUE, DEFER_STATE};

/// How often an engine's store is looked at, as a rule: as often as metrics are collected.
pub const LOOK_EVERY: Duration = Duration::from_secs(10);

/// No look follows another sooner: each asks the store.
const MOST_OFTEN: Duration = Duration::from_millis(100);

/// Attempts from the last of these on are not told apart.
const ATTEMPTS: [&str; 16] = [
    "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16+",
];

/// Looks at an engine's store for as long as it is kept; made by [`Metrics::watch_engine`].
#[derive(Debug)]
#[must_use = "nothing is looked at once this is dropped"]
pub struct EngineWatch {
    task: JoinHandle<()>,
    looks: Looks,
    number: u64,
}

impl Drop for EngineWatch {
    fn drop(&mut self) {
        self.task.abort();
        self.looks.end(self.number);
    }
}

/// What was seen last.
#[derive(Clone, Debug, Default)]
pub(crate) struct Looks(Arc<Mutex<Last>>);

#[derive(Debug, Default)]
struct Last {
    /// The watch that looks now: one that is aborted may still be at its last look, or be dropped after the next one began.
    watch: u64,
    /// Nothing where the store did not answer.
    seen: Option<Status>,
}

impl Metrics {
    /// Looks at the transactions and dead letters of an engine's store every so often, so that they are told when metrics are collected.
    ///
    /// Each look asks the store for its [status](Engine::status). What the engine itself does is heard where it was given these metrics
    /// as its listener. One engine a program: of two that are watched, the later one is told.
    ///
    /// # Errors
    ///
    /// Refuses to look more often than every 100 ms.
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime with time.
    pub fn watch_engine(
        &self,
        engine: Engine,
        every: Duration,
    ) -> Result<EngineWatch, InvalidSetting> {
        if every < MOST_OFTEN {
            let reason = "must be at least 100 ms: each look asks the store";
            return Err(InvalidSetting::new("every", format!("{every:?}"), reason));
        }
        let looks = self.watched.engine.clone();
        let number = looks.begin();
        let task = tokio::spawn(look(self.clone(), engine, every, number));
        Ok(EngineWatch {
            task,
            looks,
            number,
        })
    }
}

async fn look(metrics: Metrics, engine: Engine, every: Duration, number: u64) {
    let looks = metrics.watched.engine.clone();
    let mut begun = false;
    let mut dead = BTreeMap::new();
    loop {
        // Asked each time: there may be no provider yet.
        let counts = metrics.instruments().map(|it| &it.deferred);
        if let Some(counts) = counts.filter(|_| !begun) {
            counts.begin();
            begun = true;
        }
        let seen = engine.status().await.ok();
        if let (Some(counts), Some(seen)) = (counts, &seen) {
            for (queue, depth) in &seen.queues {
                let before = dead.insert(*queue, depth.dead).unwrap_or(depth.dead);
                counts.bury(*queue, depth.dead.saturating_sub(before));
            }
        }
        looks.note(number, seen);
        tokio::time::sleep(every).await;
    }
}

impl Looks {
    fn last(&self) -> MutexGuard<'_, Last> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins another watch; what the one before it sees from now on is not kept.
    fn begin(&self) -> u64 {
        let mut last = self.last();
        last.watch += 1;
        last.watch
    }

    fn note(&self, watch: u64, seen: Option<Status>) {
        let mut last = self.last();
        if last.watch == watch {
            last.seen = seen;
        }
    }

    fn end(&self, watch: u64) {
        let mut last = self.last();
        if last.watch == watch {
            *last = Last {
                watch: watch + 1,
                seen: None,
            };
        }
    }

    pub(crate) fn observe_with(&self, meter: &Meter) {
        self.numbers(meter, TRANSACTIONS, |seen, to| {
            let mut by: BTreeMap<(State, usize), u64> = BTreeMap::new();
            for count in &seen.census.counts {
                let attempt = usize::try_from(count.attempt).unwrap_or(usize::MAX);
                let place = attempt.clamp(1, ATTEMPTS.len()) - 1;
                *by.entry((count.state, place)).or_default() += count.transactions;
            }
            for ((state, place), transactions) in by {
                let state = KeyValue::new(DEFER_STATE, state.as_str());
                let attempt = KeyValue::new(DEFER_ATTEMPT, ATTEMPTS[place]);
                to.observe(transactions, &[state, attempt]);
            }
        });
        self.numbers(meter, OVERDUE, |seen, to| {
            to.observe(seen.census.overdue, &[]);
        });
        self.numbers(meter, DEAD_LETTERS, |seen, to| {
            for (queue, depth) in &seen.queues {
                let queue: &QueueName = queue;
                to.observe(depth.dead, &[KeyValue::new(DEFER_QUEUE, queue.as_str())]);
            }
        });
        self.age(meter, OLDEST, |seen| seen.oldest().unwrap_or_default());
        self.age(meter, OVERDUE_AGE, Status::lag);
    }

    fn numbers(
        &self,
        meter: &Meter,
        metric: Metric,
        tell: impl Fn(&Status, &dyn AsyncInstrument<u64>) + Send + Sync + 'static,
    ) {
        let looks = self.clone();
        // The meter keeps the callback; the handle is good for nothing else.
        let _handle = meter
            .u64_observable_gauge(metric.name)
            .with_unit(metric.unit)
            .with_description(metric.says)
            .with_callback(move |to| {
                if let Some(seen) = &looks.last().seen {
                    tell(seen, to);
                }
            })
            .build();
    }

    fn age(
        &self,
        meter: &Meter,
        metric: Metric,
        age: impl Fn(&Status) -> Duration + Send + Sync + 'static,
    ) {
        let looks = self.clone();
        // As above.
        let _handle = meter
            .f64_observable_gauge(metric.name)
            .with_unit(metric.unit)
            .with_description(metric.says)
            .with_callback(move |to| {
                if let Some(seen) = &looks.last().seen {
                    to.observe(age(seen).as_secs_f64(), &[]);
                }
            })
            .build();
    }
}
