//! Takes dead letters one by one, and gives back what stays.

use std::fmt::{self, Debug};
use std::future::pending;
use std::time::Duration;

use lapin::options::{BasicAckOptions, BasicGetOptions, BasicNackOptions};
use lapin::{Acker, Channel, Connection};
use mamparo_core::InvalidSetting;
use mamparo_core::clock::{SystemClock, WallClock as _};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::Letter;
use crate::link::{ANSWER, RabbitError, Trouble, answered, close, open, short};
use crate::message::{Copied, copy};
use crate::topology::{open_channel, peek};
use crate::{Message, Publisher, Settings, Topology};

/// As many letters are looked through at once, at most: all of them are held until the end, so that none is seen twice. Of a
/// longer queue, what is given back may stand behind the rest.
const MOST: usize = 10_000;

/// The dead letters of one queue.
///
/// RabbitMQ shows a message only to whoever takes it: meanwhile nobody else sees it. What is not wanted is given back when the
/// look is over, in its order if there are at most 10 000; the broker does so itself after a crash, and nothing is lost.
#[derive(Clone, Debug)]
pub struct DeadLetters {
    settings: Settings,
    topology: Topology,
}

/// Which letters, and how many of them.
///
/// ```
/// use mamparo_rabbitmq::{Letter, Selection};
///
/// let exhausted = |letter: &Letter| letter.reason() == "exhausted";
/// let selection = Selection { wanted: &exhausted, ..Selection::first(10) };
/// ```
pub struct Selection<'a> {
    /// As many at most.
    pub max: usize,
    /// The wait after each that is put back.
    pub pause: Duration,
    /// Whether this one.
    pub wanted: &'a (dyn Fn(&Letter) -> bool + Send + Sync),
    /// Is told of each once it is looked at, put back or discarded: where the connection is lost half-way, of those before.
    pub done: &'a (dyn Fn(&Letter) + Send + Sync),
}

impl Selection<'_> {
    /// Selects so many, whatever they are, without a pause.
    #[must_use]
    pub const fn first(max: usize) -> Self {
        Self {
            max,
            pause: Duration::ZERO,
            wanted: &|_| true,
            done: &|_| {},
        }
    }
}

impl Debug for Selection<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Selection")
            .field("max", &self.max)
            .field("pause", &self.pause)
            .finish_non_exhaustive()
    }
}

/// How many messages are ready in the queues of a topology.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Depths {
    /// To be taken by consumers.
    pub ready: u32,
    /// To be tried again; those in a queue that is not declared with these delays are not counted.
    pub retry: u32,
    /// Dead letters.
    pub dead: u32,
}

/// What is done with a letter that is wanted.
#[derive(Clone, Copy, Debug)]
enum Deed<'a> {
    Look,
    Requeue(&'a Publisher),
    Discard,
}

impl DeadLetters {
    /// Names the queue whose dead letters they are.
    ///
    /// # Errors
    ///
    /// [`InvalidSetting`] for a name that no queue has.
    pub fn of(settings: Settings, queue: &str) -> Result<Self, InvalidSetting> {
        Topology::builder(queue)
            .build()
            .map(|topology| Self::in_topology(settings, topology))
    }

    /// The same, of a topology whose delays are known.
    #[must_use]
    pub const fn in_topology(settings: Settings, topology: Topology) -> Self {
        Self { settings, topology }
    }

    /// Returns the name of the queue whose dead letters they are.
    #[must_use]
    pub fn queue(&self) -> &str {
        self.topology.queue()
    }

    /// Counts what is ready in the queues; a gauge of the last two is what an alert needs.
    ///
    /// # Errors
    ///
    /// [`RabbitError`] when the broker can't be asked.
    pub async fn depths(&self) -> Result<Depths, RabbitError> {
        let live = open(&self.settings).await?;
        let counted = self.count(&live.connection).await;
        close(&live).await;
        counted
    }

    /// Looks at those that are wanted.
    ///
    /// # Errors
    ///
    /// [`RabbitError`] when the broker can't be asked, or has no such queue.
    pub async fn list(&self, selection: Selection<'_>) -> Result<Vec<Letter>, RabbitError> {
        self.go_through(selection, Deed::Look, pending()).await
    }

    /// Puts those that are wanted back into their queue, as if never tried, until `stop` ends; returns them. Each is kept
    /// until its copy is confirmed: killed in between, it is there twice.
    ///
    /// # Errors
    ///
    /// [`RabbitError`] when the broker can't be asked, or no queue takes them; those before it are put back already.
    pub async fn requeue(
        &self,
        selection: Selection<'_>,
        stop: impl Future<Output = ()>,
    ) -> Result<Vec<Letter>, RabbitError> {
        let publisher = Publisher::new(self.settings.clone());
        let done = self
            .go_through(selection, Deed::Requeue(&publisher), stop)
            .await;
        publisher.close().await;
        done
    }

    /// Removes those that are wanted, for good, until `stop` ends; returns them.
    ///
    /// # Errors
    ///
    /// As [`list`](Self::list).
    pub async fn discard(
        &self,
        selection: Selection<'_>,
        stop: impl Future<Output = ()>,
    ) -> Result<Vec<Letter>, RabbitError> {
        self.go_through(selection, Deed::Discard, stop).await
    }

    /// Counts over a connection that is open.
    pub(crate) async fn count(&self, connection: &Connection) -> Result<Depths, RabbitError> {
        let count = async |queue: &str| {
            // A queue that is not there closes the channel.
            let channel = open_channel(connection).await?;
            let counted = peek(&channel, queue).await?;
            drop(answered("closing a channel", channel.close(200, short(""))).await);
            Ok::<_, RabbitError>(counted.unwrap_or_default())
        };
        let mut depths = Depths {
            ready: count(self.topology.queue()).await?,
            retry: 0,
            dead: count(&self.topology.dead_letters()).await?,
        };
        for (queue, _) in self.topology.retries() {
            depths.retry += count(&queue).await?;
        }
        Ok(depths)
    }

    async fn go_through(
        &self,
        selection: Selection<'_>,
        deed: Deed<'_>,
        stop: impl Future<Output = ()>,
    ) -> Result<Vec<Letter>, RabbitError> {
        let live = open(&self.settings).await?;
        let mut held = Vec::new();
        let (stopping, stopped) = watch::channel(false);
        let hear = async {
            stop.await;
            stopping.send_replace(true);
            // What is under way is brought to its end.
            pending::<()>().await;
        };
        let done = tokio::select! {
            done = self.each(&live.channel, &selection, deed, stopped, &mut held) => done,
            () = hear => Ok(Vec::new()),
        };
        give_back(&held).await;
        seen_again(&live.channel, &self.topology.dead_letters(), held.len()).await;
        close(&live).await;
        done
    }

    async fn each(
        &self,
        channel: &Channel,
        selection: &Selection<'_>,
        deed: Deed<'_>,
        mut stopped: watch::Receiver<bool>,
        held: &mut Vec<Acker>,
    ) -> Result<Vec<Letter>, RabbitError> {
        let queue = self.topology.dead_letters();
        let Some(all) = peek(channel, &queue).await? else {
            let message = format!("there is no queue {queue}");
            return Err(RabbitError::new(Trouble::Unroutable, message));
        };
        let mut done = Vec::new();
        for number in 1..=MOST.min(all as usize) {
            let enough = done.len() >= selection.max || *stopped.borrow();
            // Given back, letters go behind those that were given back before: all are, or none.
            if enough && held.is_empty() {
                break;
            }
            // Somebody else may have emptied it.
            let Some((letter, acker)) = self.take(channel, &queue, number).await? else {
                break;
            };
            if enough || !(selection.wanted)(&letter) {
                held.push(acker);
                continue;
            }
            match deed {
                Deed::Look => held.push(acker),
                Deed::Requeue(publisher) => {
                    self.put_back(publisher, &letter).await?;
                    forget(&acker).await?;
                }
                Deed::Discard => forget(&acker).await?,
            }
            (selection.done)(&letter);
            done.push(letter);
            if let Deed::Requeue(_) = deed {
                drop(timeout(selection.pause, stopped.wait_for(|stop| *stop)).await);
            }
        }
        Ok(done)
    }

    async fn put_back(&self, publisher: &Publisher, letter: &Letter) -> Result<(), RabbitError> {
        let at = SystemClock.now();
        let dead = self.topology.dead_letters();
        let message = Message {
            body: letter.body.clone(),
            properties: copy(&letter.properties, "", &dead, Copied::Requeued { at }),
        };
        publisher.publish("", self.topology.queue(), message).await
    }

    async fn take(
        &self,
        channel: &Channel,
        queue: &str,
        number: usize,
    ) -> Result<Option<(Letter, Acker)>, RabbitError> {
        let got = channel.basic_get(short(queue), BasicGetOptions::default());
        let got = answered(&format!("reading {queue}"), got).await?;
        Ok(got.map(|got| {
            let letter = Letter {
                number,
                properties: got.delivery.properties,
                body: got.delivery.data.into(),
                topology: self.topology.clone(),
            };
            (letter, got.delivery.acker)
        }))
    }
}

async fn forget(acker: &Acker) -> Result<(), RabbitError> {
    let told = timeout(ANSWER, acker.ack(BasicAckOptions::default())).await;
    if matches!(told, Ok(Ok(true))) {
        return Ok(());
    }
    Err(RabbitError::lost())
}

/// Waits until what was given back can be taken by the next who looks; if others are quicker, not for long.
async fn seen_again(channel: &Channel, queue: &str, letters: usize) {
    for _ in 0..LOOKS {
        match peek(channel, queue).await {
            Ok(Some(ready)) if (ready as usize) < letters => sleep(LOOK).await,
            _ => return,
        }
    }
}

/// As often, and with such a wait in between, it is looked whether they can be taken.
const LOOKS: u32 = 50;
const LOOK: Duration = Duration::from_millis(10);

/// All at once, so that they stand in their order again; where the connection is lost, the broker does it.
async fn give_back(held: &[Acker]) {
    let Some(last) = held.last() else {
        return;
    };
    let options = BasicNackOptions {
        multiple: true,
        requeue: true,
    };
    drop(timeout(ANSWER, last.nack(options)).await);
}
