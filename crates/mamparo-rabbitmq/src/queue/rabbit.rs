//! The trait, on top of the rest.

use std::fmt::{self, Debug};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use mamparo_durable::backend::{
    BackendError, BoxFuture, DeadLetter, Delivery, Depth, Message, Queue, QueueName, Receipt,
    Trouble as BackendTrouble,
};
use mamparo_durable::machine::Label;

use super::config::RabbitQueueBuilder;
use super::desk::Desk;
use super::letters::Letters;
use super::moves::now;
use super::session::Session;
use super::wire::write;
use crate::{DeadLetters, Publisher, RabbitError, Settings, Topology, Trouble};

/// After a connection could not be made, whoever waits for a message looks again after so long, and is told why.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// One of the engine's queues, in RabbitMQ: at least once, each delivery under a lease. All of them are quorum queues.
///
/// A lease is a message that is not acknowledged on our connection; when it is over, the message goes back to the broker, which
/// delivers it again to any engine. So it does when the connection is lost. What is published or moved is confirmed first, so
/// that a crash in between shows a message twice and loses none.
///
/// Answers and requests may be here while the store, the schedules and the fires are in a database; then the parts are asked one
/// after the other. Answers are the JSON of [`Message::to_json`]; a request is its own body, with headers that say what it is about
/// ([`headers`](crate::headers)), and its idempotency key for an id.
///
/// ```no_run
/// use mamparo_core::clock::SystemClock;
/// use mamparo_durable::backend::QueueName;
/// use mamparo_durable::memory::Memory;
/// use mamparo_rabbitmq::{RabbitQueue, Settings};
/// use std::sync::Arc;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let broker = Settings::builder("amqp://guest:guest@localhost/%2f").build()?;
/// let answers = RabbitQueue::builder(broker.clone(), QueueName::Answers, "payments.answers").build()?;
/// let requests = RabbitQueue::builder(broker, QueueName::Requests, "payments.requests").build()?;
/// answers.declare().await?;
/// requests.declare().await?;
/// // For more than a test: the backend of a `SqliteDurable` or a `Postgres`.
/// let backend = Memory::new(SystemClock)
///     .backend()
///     .with_queue(QueueName::Answers, Arc::new(answers))
///     .with_queue(QueueName::Requests, Arc::new(requests));
/// assert!(backend.outbox().is_none());
/// # Ok(())
/// # }
/// ```
pub struct RabbitQueue {
    settings: Settings,
    pub(super) topology: Topology,
    pub(super) name: QueueName,
    pub(super) redelivery_limit: u32,
    prefetch: u16,
    pub(super) publisher: Publisher,
    letters: Letters,
    pub(super) desk: Arc<Desk>,
    session: tokio::sync::Mutex<Option<Arc<Session>>>,
    pub(super) last_letter: Mutex<u64>,
    /// Who looks at dead letters takes them away meanwhile.
    looking: Arc<tokio::sync::Mutex<()>>,
}

impl RabbitQueue {
    /// Starts from the broker, which of the engine's queues it is, the name that it has in RabbitMQ, and the defaults.
    ///
    /// Beside the queue itself there are `<queue>.retry.…`, `<queue>.dlq`, `<queue>.discarded` and the exchange `<queue>.dlx`.
    pub fn builder(
        settings: Settings,
        name: QueueName,
        queue: impl Into<String>,
    ) -> RabbitQueueBuilder {
        RabbitQueueBuilder::of(settings, name, queue.into())
    }

    pub(super) fn new(config: RabbitQueueBuilder, topology: Topology) -> Self {
        let publisher = Publisher::new(config.settings.clone());
        let letters = Letters {
            letters: DeadLetters::in_topology(config.settings.clone(), topology.clone()),
            publisher: publisher.clone(),
            name: config.name,
        };
        Self {
            settings: config.settings,
            topology,
            name: config.name,
            redelivery_limit: config.redelivery_limit,
            prefetch: config.prefetch,
            publisher,
            letters,
            desk: Arc::default(),
            session: tokio::sync::Mutex::default(),
            last_letter: Mutex::default(),
            looking: Arc::default(),
        }
    }

    /// Returns which queues it has.
    #[must_use]
    pub const fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Connects and declares its queues. Whoever takes does so too; this tells at the start what is wrong.
    ///
    /// # Errors
    ///
    /// [`RabbitError`]: no connection, or queues that exist otherwise, each with the difference.
    pub async fn declare(&self) -> Result<(), RabbitError> {
        self.publisher.declare(&self.topology).await
    }

    /// Closes its connections; what is not settled is delivered again. What is called later, connects again.
    pub async fn close(&self) {
        if let Some(session) = self.session.lock().await.take() {
            session.close().await;
        }
        self.publisher.close().await;
    }

    /// Returns the connection that consumes, made anew if it was lost.
    pub(super) async fn session(&self) -> Result<Arc<Session>, RabbitError> {
        let mut current = self.session.lock().await;
        if let Some(session) = current.as_ref().filter(|session| session.is_open()) {
            return Ok(Arc::clone(session));
        }
        if let Some(lost) = current.take() {
            lost.close().await;
        }
        let begun = Session::begin(&self.settings, &self.topology, self.prefetch, &self.desk);
        let session = Arc::new(begun.await?);
        *current = Some(Arc::clone(&session));
        Ok(session)
    }

    async fn count(&self) -> Result<Depth, RabbitError> {
        let current = self.session.lock().await.clone();
        let depths = match current.filter(|session| session.is_open()) {
            Some(session) => {
                session.catch_up(self.topology.queue()).await?;
                self.letters.letters.count(&session.live.connection).await?
            }
            // Not to take what is only to be counted.
            None => self.letters.letters.depths().await?,
        };
        Ok(Depth {
            ready: u64::from(depths.ready) + self.desk.in_line() as u64,
            later: depths.retry.into(),
            taken: self.desk.taken() as u64,
            dead: depths.dead.into(),
        })
    }

    async fn wait(&self) {
        let arrived = self.desk.arrived.notified();
        tokio::pin!(arrived);
        // From here on an arrival is heard, also one that comes before the first poll.
        arrived.as_mut().enable();
        if self.desk.in_line() > 0 {
            return;
        }
        match self.session().await {
            Ok(_) => arrived.await,
            Err(_) => tokio::time::sleep(LOOK_AGAIN).await,
        }
    }

    /// Does something with dead letters to its end, even if nobody waits for it any more.
    async fn to_the_end<T: Send + 'static>(
        &self,
        deed: impl Future<Output = Result<T, RabbitError>> + Send + 'static,
    ) -> Result<T, BackendError> {
        let alone = Arc::clone(&self.looking).lock_owned().await;
        let done = tokio::spawn(async move {
            let done = deed.await;
            drop(alone);
            done
        });
        done.await
            .unwrap_or_else(|_| Err(RabbitError::lost()))
            .map_err(told)
    }
}

impl Debug for RabbitQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RabbitQueue")
            .field("name", &self.name)
            .field("topology", &self.topology)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl Queue for RabbitQueue {
    fn publish(&self, messages: Vec<Message>) -> BoxFuture<'_, Result<(), BackendError>> {
        Box::pin(async move {
            let now = now();
            let sent = messages
                .iter()
                .map(|message| self.send(self.topology.queue(), write(message, now)));
            let sent = join_all(sent).await;
            sent.into_iter().collect::<Result<(), _>>().map_err(told)
        })
    }

    fn take(
        &self,
        max: usize,
        lease: Duration,
    ) -> BoxFuture<'_, Result<Vec<Delivery>, BackendError>> {
        Box::pin(async move { self.take_now(max, lease).await.map_err(told) })
    }

    fn ready(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.wait())
    }

    fn acknowledge(&self, receipts: Vec<Receipt>) -> BoxFuture<'_, Result<(), BackendError>> {
        Box::pin(async move {
            let settling = receipts
                .iter()
                .filter_map(|receipt| self.desk.settle(receipt));
            let told_all = join_all(settling.map(|(settling, _)| settling.acknowledge())).await;
            told_all
                .into_iter()
                .collect::<Result<(), _>>()
                .map_err(told)
        })
    }

    fn release(
        &self,
        receipt: Receipt,
        delay: Duration,
        spent: bool,
    ) -> BoxFuture<'_, Result<(), BackendError>> {
        Box::pin(async move {
            let released = self.release_now(&receipt, delay, spent).await;
            released.map_err(told)
        })
    }

    fn bury(&self, receipt: Receipt, why: Label) -> BoxFuture<'_, Result<(), BackendError>> {
        Box::pin(async move {
            let buried = self.bury_now(&receipt, why.as_str(), true).await;
            buried.map_err(told)
        })
    }

    fn extend(
        &self,
        receipts: Vec<Receipt>,
        lease: Duration,
    ) -> BoxFuture<'_, Result<(), BackendError>> {
        for receipt in &receipts {
            self.desk.extend(receipt, lease);
        }
        Box::pin(async { Ok(()) })
    }

    fn depth(&self) -> BoxFuture<'_, Result<Depth, BackendError>> {
        Box::pin(async move { self.count().await.map_err(told) })
    }

    fn dead(
        &self,
        after: Option<u64>,
        max: usize,
    ) -> BoxFuture<'_, Result<Vec<DeadLetter>, BackendError>> {
        let letters = self.letters.clone();
        Box::pin(self.to_the_end(async move { letters.dead(after, max).await }))
    }

    fn requeue(&self, numbers: Vec<u64>) -> BoxFuture<'_, Result<usize, BackendError>> {
        Box::pin(self.to_the_end(self.letters.clone().requeue(numbers)))
    }

    fn discard(
        &self,
        numbers: Vec<u64>,
        reason: Label,
    ) -> BoxFuture<'_, Result<usize, BackendError>> {
        Box::pin(self.to_the_end(self.letters.clone().discard(numbers, reason)))
    }
}

fn told(error: RabbitError) -> BackendError {
    let trouble = match error.trouble() {
        Trouble::Refused => BackendTrouble::Refused,
        Trouble::Mismatch => BackendTrouble::Incompatible,
        // A queue that is missing is declared at the next call.
        Trouble::Unavailable | Trouble::Unconfirmed | Trouble::Unreadable | Trouble::Unroutable => {
            BackendTrouble::Unavailable
        }
    };
    BackendError::new(trouble, error.to_string()).from_source(error)
}
