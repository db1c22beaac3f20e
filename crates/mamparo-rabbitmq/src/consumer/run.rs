//! Keeps a consumer at work: connects again, starts again, and gives up when that doesn't help.

use std::error::Error;
use std::fmt::{self, Display};
use std::sync::Arc;
use std::time::Duration;

use mamparo_core::{BoxError, Classify, clock};
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinError, JoinSet};
use tokio::time::timeout;
use tower_service::Service;

use super::handle::{Desk, Work};
use super::report::ConsumerEvent;
use super::session::{End, Lost, Session, all_of};
use super::settings::Rules;
use super::{ConsumerBuilder, ConsumerStatus, MessageClass};
use crate::link::Waits;
use crate::{Delivery, Publisher, RabbitError, Settings, Topology, Trouble};

/// A task that has worked for so long has not died before.
const FORGIVEN: Duration = Duration::from_secs(60);

/// Takes the messages of one queue, hands each to a service, and settles it by the verdict: the table of [`consumer`](crate::consumer).
///
/// It has two connections of its own, one to take and one to publish copies, apart from all other traffic. Where the broker is
/// away, it tries to connect until it is back, and is not ready meanwhile.
///
/// ```no_run
/// use mamparo_core::BoxError;
/// use mamparo_rabbitmq::{Consumer, Delivery, Permanent, Settings, Topology};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let settings = Settings::builder("amqp://guest:guest@localhost/%2f").build()?;
/// let topology = Topology::builder("payments").owner("team payments").build()?;
/// let consumer = Consumer::builder(settings, topology).build()?;
/// let handler = tower::service_fn(async |delivery: Delivery| {
///     let text = std::str::from_utf8(delivery.body()).map_err(Permanent::new)?;
///     println!("attempt {}: {text}", delivery.attempt());
///     Ok::<(), BoxError>(())
/// });
/// let stop = std::future::pending(); // SIGTERM, in earnest
/// consumer.run(handler, stop).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Consumer {
    settings: Settings,
    topology: Topology,
    rules: Rules,
    ready: watch::Sender<bool>,
    status: ConsumerStatus,
}

impl Consumer {
    /// Starts from where the broker is, what the queues are, and the defaults.
    pub fn builder(settings: Settings, topology: Topology) -> ConsumerBuilder {
        ConsumerBuilder::new(settings, topology)
    }

    pub(super) fn new(settings: Settings, topology: Topology, rules: Rules) -> Self {
        let (ready, status) = ConsumerStatus::pair();
        Self {
            settings,
            topology,
            rules,
            ready,
            status,
        }
    }

    /// Returns what tells whether it takes messages.
    #[must_use]
    pub fn status(&self) -> ConsumerStatus {
        self.status.clone()
    }

    /// Works until `stop` ends: then it takes no more messages, waits for those under way, gives the others back, and returns.
    ///
    /// Every call of the service is made on a clone of it.
    ///
    /// # Errors
    ///
    /// [`ConsumerError`]: the broker refuses us or has other queues, or the task died too often. The process should then end:
    /// nobody takes the messages.
    pub async fn run<S>(
        self,
        service: S,
        stop: impl Future<Output = ()>,
    ) -> Result<(), ConsumerError>
    where
        S: Service<Delivery> + Clone + Send + 'static,
        S::Error: Into<BoxError>,
        S::Future: Send,
        S::Response: Send,
    {
        self.run_with(service, MessageClass, stop).await
    }

    /// The same, with a classifier that judges what the service answers.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub async fn run_with<S, C>(
        self,
        service: S,
        classifier: C,
        stop: impl Future<Output = ()>,
    ) -> Result<(), ConsumerError>
    where
        S: Service<Delivery> + Clone + Send + 'static,
        S::Error: Into<BoxError>,
        S::Future: Send,
        S::Response: Send,
        C: Classify<S::Response>,
    {
        let (stopping, stopped) = watch::channel(false);
        let publisher = Publisher::new(self.settings.clone());
        let desk = Desk {
            classifier,
            publisher: publisher.clone(),
            topology: self.topology.clone(),
            rules: self.rules.clone(),
            places: Arc::new(Semaphore::new(self.rules.concurrency)),
            stop: stopped,
        };
        let work = Work {
            service,
            desk: Arc::new(desk),
        };
        // Dropped, it takes the tasks with it.
        let mut lost = JoinSet::new();
        let mut told = None;
        let ended = {
            let supervised = self.supervise(work, &mut lost);
            tokio::pin!(supervised);
            tokio::select! {
                ended = &mut supervised => ended,
                () = stop => {
                    stopping.send_replace(true);
                    told = Some(clock::now());
                    supervised.await
                }
            }
        };
        self.ready.send_replace(false);
        let waited = told.map_or(Duration::ZERO, |told| clock::now() - told);
        let left = self.rules.drain_timeout.saturating_sub(waited);
        drop(timeout(left, all_of(&mut lost)).await);
        drop(lost);
        publisher.close().await;
        ended
    }

    /// Puts into `lost` what was under way over connections that are lost.
    async fn supervise<S, C>(
        &self,
        work: Work<S, C>,
        lost: &mut JoinSet<()>,
    ) -> Result<(), ConsumerError>
    where
        S: Service<Delivery> + Clone + Send + 'static,
        S::Error: Into<BoxError>,
        S::Future: Send,
        S::Response: Send,
        C: Classify<S::Response>,
    {
        let (mut deaths, mut waits, mut careful, mut worked) = (0, Waits::default(), false, false);
        loop {
            let began = clock::now();
            let session = Session {
                settings: self.settings.clone(),
                work: work.clone(),
                ready: self.ready.clone(),
                careful,
            };
            // Dropped, it takes the task with it; a task of its own, so that a panic in it ends nothing else.
            let mut alone = JoinSet::new();
            alone.spawn(session.run());
            let ended = alone.join_next().await;
            let was_ready = self.ready.send_replace(false);
            worked |= was_ready;
            if was_ready {
                waits.reset();
            }
            if clock::now() - began > FORGIVEN {
                deaths = 0;
            }
            let wait = waits.next();
            match ended {
                None | Some(Ok(Ok(End::Stopped))) => return Ok(()),
                Some(Ok(Ok(End::Calm))) => {
                    careful = false;
                    continue;
                }
                Some(Ok(Err(Lost { error, mut tasks }))) => {
                    // Those that have ended need not be kept.
                    while lost.try_join_next().is_some() {}
                    lost.spawn(async move { all_of(&mut tasks).await });
                    careful = error.trouble() == Trouble::Unreadable;
                    // A broker that starts refuses for a moment whom it has let in before.
                    if !error.is_transient() && !worked {
                        return Err(ConsumerError::refused(error));
                    }
                    self.disconnected(&error, wait);
                }
                Some(Err(error)) => {
                    deaths += 1;
                    let why = died_of(error);
                    let (topology, report) = (&self.topology, &self.rules.report);
                    report.tell(&ConsumerEvent::Died {
                        topology,
                        why: &why,
                    });
                    if deaths > self.rules.max_restarts {
                        return Err(ConsumerError::died(&why));
                    }
                }
            }
            if work.desk.stops_within(wait).await {
                return Ok(());
            }
        }
    }

    fn disconnected(&self, error: &RabbitError, wait: Duration) {
        let topology = &self.topology;
        self.rules.report.tell(&ConsumerEvent::Disconnected {
            topology,
            error,
            wait,
        });
    }
}

fn died_of(error: JoinError) -> String {
    match error.try_into_panic() {
        Ok(panic) => format!("it panicked: {}", said(&*panic)),
        Err(error) => error.to_string(),
    }
}

/// What a panic said.
pub(super) fn said(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("without a message")
}

/// A consumer has given up; its messages stay in their queue.
#[derive(Debug)]
pub struct ConsumerError {
    message: String,
    source: Option<RabbitError>,
}

impl ConsumerError {
    /// Tells whether the broker refuses us, or has other queues: started again, it ends so again.
    #[must_use]
    pub const fn is_refusal(&self) -> bool {
        self.source.is_some()
    }

    fn refused(error: RabbitError) -> Self {
        Self {
            message: error.to_string(),
            source: Some(error),
        }
    }

    fn died(why: &str) -> Self {
        Self {
            message: format!("the consumer died too often: {why}"),
            source: None,
        }
    }
}

impl Display for ConsumerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for ConsumerError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        // What it says is said already.
        self.source.as_ref().and_then(|error| error.source())
    }
}
