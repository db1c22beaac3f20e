//! How many messages there are in queues.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use mamparo_core::InvalidSetting;
use mamparo_rabbitmq::{DeadLetters, Depths};
use opentelemetry::KeyValue;
use opentelemetry::metrics::{AsyncInstrument, Meter};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::Metrics;
use crate::metrics::messages::DEPTH;
use crate::semconv::{MESSAGE_QUEUE, MESSAGE_STATE};

/// No look follows another sooner: each opens a connection.
const MOST_OFTEN: Duration = Duration::from_secs(1);

/// Looks at a queue for as long as it is kept; made by [`Metrics::watch_queue`].
#[derive(Debug)]
#[must_use = "nothing is looked at once this is dropped"]
pub struct QueueWatch(JoinHandle<()>);

impl Drop for QueueWatch {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The queues that are looked at; each is there for as long as whoever looks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queues(Arc<Mutex<Vec<Weak<Look>>>>);

/// What was seen of a queue last; nothing where the broker did not answer.
#[derive(Debug)]
struct Look {
    queue: String,
    seen: Mutex<Option<Depths>>,
}

impl Metrics {
    /// Looks every so often at how many messages are in the queues of a topology, so that it is told when metrics are collected.
    ///
    /// Once for each queue. Several programs that look at one queue all tell the same.
    ///
    /// # Errors
    ///
    /// Refuses to look more often than every second.
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime with time.
    pub fn watch_queue(
        &self,
        letters: DeadLetters,
        every: Duration,
    ) -> Result<QueueWatch, InvalidSetting> {
        if every < MOST_OFTEN {
            let reason = "must be at least 1 s: each look opens a connection";
            return Err(InvalidSetting::new("every", format!("{every:?}"), reason));
        }
        let look = self.watched.queues.add(letters.queue());
        let metrics = self.clone();
        Ok(QueueWatch(tokio::spawn(async move {
            loop {
                // Asked each time: there may be no provider yet, by which it is read.
                metrics.instruments();
                let seen = letters.depths().await.ok();
                *look.seen() = seen;
                sleep(every).await;
            }
        })))
    }
}

impl Queues {
    fn add(&self, queue: &str) -> Arc<Look> {
        let look = Arc::new(Look {
            queue: queue.to_owned(),
            seen: Mutex::default(),
        });
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|look| look.strong_count() > 0);
        all.push(Arc::downgrade(&look));
        look
    }

    pub(crate) fn observe_with(&self, meter: &Meter) {
        let queues = self.clone();
        // The meter keeps the callback; the handle is good for nothing else.
        let _handle = meter
            .u64_observable_gauge(DEPTH.name)
            .with_unit(DEPTH.unit)
            .with_description(DEPTH.says)
            .with_callback(move |to| {
                let all = queues.0.lock().unwrap_or_else(PoisonError::into_inner);
                for look in all.iter().filter_map(Weak::upgrade) {
                    look.tell(to);
                }
            })
            .build();
    }
}

impl Look {
    fn seen(&self) -> MutexGuard<'_, Option<Depths>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, to: &dyn AsyncInstrument<u64>) {
        let Some(depths) = *self.seen() else {
            return;
        };
        for (state, messages) in [
            ("ready", depths.ready),
            ("retry", depths.retry),
            ("dead", depths.dead),
        ] {
            let queue = KeyValue::new(MESSAGE_QUEUE, self.queue.clone());
            let state = KeyValue::new(MESSAGE_STATE, state);
            to.observe(u64::from(messages), &[queue, state]);
        }
    }
}
