//! One connection's worth of messages.

use std::future::pending;
use std::sync::Arc;

use futures_util::StreamExt as _;
use lapin::options::{BasicConsumeOptions, BasicNackOptions, BasicQosOptions};
use lapin::types::FieldTable;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use super::desk::Desk;
use crate::link::{ANSWER, Live, RabbitError, Trouble, answered, close, open, short};
use crate::topology::{declare, peek};
use crate::{Settings, Topology};

/// As many may wait at once to hear that all was read.
const CATCHING_UP: usize = 64;

/// A connection that consumes, and what reads it into the desk until it is lost or dropped.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) live: Live,
    /// Closed once nothing reads any more.
    read: mpsc::Sender<oneshot::Sender<()>>,
    _reader: JoinSet<()>,
}

impl Session {
    /// Connects, declares the queues, and consumes.
    ///
    /// # Errors
    ///
    /// No connection, or queues that exist otherwise, each with the difference.
    pub(super) async fn begin(
        settings: &Settings,
        topology: &Topology,
        prefetch: u16,
        desk: &Arc<Desk>,
    ) -> Result<Self, RabbitError> {
        let live = open(settings).await?;
        let consumer = match consume(&live, topology, prefetch).await {
            Ok(consumer) => consumer,
            Err(error) => {
                close(&live).await;
                return Err(error);
            }
        };
        let (read, asked) = mpsc::channel(CATCHING_UP);
        let mut reader = JoinSet::new();
        reader.spawn(fill(Arc::clone(desk), desk.begin(), consumer, asked));
        Ok(Self {
            live,
            read,
            _reader: reader,
        })
    }

    pub(super) fn is_open(&self) -> bool {
        self.live.is_open() && !self.read.is_closed()
    }

    /// Waits until whatever was in the queue for us when this was called, is on the desk.
    ///
    /// # Errors
    ///
    /// The connection is lost, or the queue is gone.
    pub(super) async fn catch_up(&self, queue: &str) -> Result<(), RabbitError> {
        let told = self.live.answer(async {
            // The first asks the queue itself, which has sent by then all that it had for us; on this channel, that comes before
            // the answer to the second.
            for _ in 0..2 {
                if peek(&self.live.channel, queue).await?.is_none() {
                    let message = format!("the queue {queue} is gone");
                    return Err(RabbitError::new(Trouble::Unavailable, message));
                }
            }
            let (reply, read) = oneshot::channel();
            // It has ended if it can't be asked or does not reply.
            let asked = self.read.send(reply).await;
            asked.map_err(|_| RabbitError::lost())?;
            read.await.map_err(|_| RabbitError::lost())
        });
        told.await.unwrap_or_else(|| Err(RabbitError::lost()))
    }

    pub(super) async fn close(&self) {
        close(&self.live).await;
    }
}

async fn consume(
    live: &Live,
    topology: &Topology,
    prefetch: u16,
) -> Result<lapin::Consumer, RabbitError> {
    declare(&live.connection, topology).await?;
    let limited = live.channel.basic_qos(prefetch, BasicQosOptions::default());
    answered("limiting what is taken at once", limited).await?;
    let (options, arguments) = (BasicConsumeOptions::default(), FieldTable::default());
    let queue = short(topology.queue());
    let consumer = live
        .channel
        .basic_consume(queue, short(""), options, arguments);
    answered(&format!("consuming {}", topology.queue()), consumer).await
}

/// Puts what is delivered on the desk, and gives back what nobody settled in time.
async fn fill(
    desk: Arc<Desk>,
    session: u64,
    mut consumer: lapin::Consumer,
    mut asked: mpsc::Receiver<oneshot::Sender<()>>,
) {
    let mut end = None;
    loop {
        tokio::select! {
            biased;
            next = consumer.next() => match next {
                Some(Ok(delivery)) => desk.add(session, delivery.into()),
                Some(Err(_)) | None => break,
            },
            // Whatever had come is on the desk.
            Some(reply) = asked.recv() => drop(reply.send(())),
            () = desk.leased.notified() => end = desk.next_end(),
            () = over(end) => {
                give_back(&desk).await;
                end = desk.next_end();
            }
        }
    }
    desk.forget(session);
}

async fn over(end: Option<Instant>) {
    match end {
        Some(end) => sleep_until(end).await,
        None => pending().await,
    }
}

async fn give_back(desk: &Desk) {
    let options = BasicNackOptions {
        requeue: true,
        ..BasicNackOptions::default()
    };
    for delivered in desk.over() {
        // Where the connection is lost, the broker does it.
        drop(timeout(ANSWER, delivered.acker.nack(options)).await);
    }
}
