//! One connection's worth of messages.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use lapin::message::Delivery as Delivered;
use lapin::options::{BasicCancelOptions, BasicConsumeOptions, BasicQosOptions};
use lapin::types::FieldTable;
use mamparo_core::{BoxError, Classify};
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{sleep, timeout};
use tower_service::Service;

use super::handle::{Desk, Work, give_back};
use super::report::ConsumerEvent;
use crate::link::{Live, answered, close, open, short, trouble};
use crate::topology::declare;
use crate::{Delivery, RabbitError, Settings, Trouble};

/// As many messages are taken at once after one that could not be read: it alone then reaches the delivery limit.
const CAREFUL: u16 = 1;

/// What could not be read is gone when so many messages were settled since, or so much time has passed.
const ENOUGH: usize = 20;
const CALM: Duration = Duration::from_secs(60);

/// As long as it may take to give back what nobody began; the broker does it anyway, when the connection is closed.
const GIVING_BACK: Duration = Duration::from_secs(5);

/// What a consumer that ends without an error is told.
const ENDED: &str = "the broker has ended the consumer: its queue was deleted, or has no leader";

/// How a session ended, if not by an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Stopped,
    /// It was careful, and need not be any longer.
    Calm,
}

/// A session that ended by an error, and what it began: it runs to its end unheard, since its messages are delivered again.
pub(super) struct Lost {
    pub(super) error: RabbitError,
    pub(super) tasks: JoinSet<()>,
}

impl From<RabbitError> for Lost {
    fn from(error: RabbitError) -> Self {
        let tasks = JoinSet::new();
        Self { error, tasks }
    }
}

/// What a session needs.
pub(super) struct Session<S, C> {
    pub(super) settings: Settings,
    pub(super) work: Work<S, C>,
    pub(super) ready: watch::Sender<bool>,
    /// The last one ended because of something that could not be read.
    pub(super) careful: bool,
}

impl<S, C> Session<S, C>
where
    S: Service<Delivery> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send,
    S::Response: Send,
    C: Classify<S::Response>,
{
    /// Takes messages until it is told to stop, or need not be careful any longer, or the connection is lost.
    pub(super) async fn run(self) -> Result<End, Lost> {
        let Self {
            settings,
            work,
            ready,
            careful,
        } = self;
        let desk = Arc::clone(&work.desk);
        let live = tokio::select! {
            live = open(&settings) => live?,
            () = desk.stopped() => return Ok(End::Stopped),
        };
        let mut consumer = tokio::select! {
            begun = begin(&desk, &live, careful) => begun?,
            () = desk.stopped() => {
                close(&live).await;
                return Ok(End::Stopped);
            }
        };
        ready.send_replace(true);
        let topology = &desk.topology;
        desk.rules
            .report
            .tell(&ConsumerEvent::Connected { topology });
        let mut tasks = JoinSet::new();
        // What was taken and has no place yet, in its order; the prefetch bounds it.
        let mut waiting = VecDeque::new();
        let calm = sleep(CALM);
        tokio::pin!(calm);
        let mut settled = 0;
        let end = loop {
            if careful && tasks.is_empty() && (settled >= ENOUGH || calm.is_elapsed()) {
                break End::Calm;
            }
            tokio::select! {
                biased;
                () = desk.stopped() => break End::Stopped,
                () = &mut calm, if careful && !calm.is_elapsed() => {}
                Some(done) = tasks.join_next() => {
                    died(done);
                    settled += 1;
                }
                Some(place) = desk.place(), if !waiting.is_empty() => {
                    if let Some(delivery) = waiting.pop_front() {
                        tasks.spawn(work.clone().settle(delivery, place));
                    }
                }
                next = consumer.next() => match next {
                    Some(Ok(delivery)) => waiting.push_back(delivery),
                    Some(Err(error)) => {
                        let error = trouble(error, "taking messages");
                        return Err(Lost { error, tasks });
                    }
                    None => {
                        let error = RabbitError::new(Trouble::Unavailable, ENDED);
                        return Err(Lost { error, tasks });
                    }
                },
            }
        };
        stop(&desk, &live, consumer, waiting, tasks).await;
        Ok(end)
    }
}

/// Declares the queues, and consumes.
async fn begin<C>(
    desk: &Desk<C>,
    live: &Live,
    careful: bool,
) -> Result<lapin::Consumer, RabbitError> {
    let topology = &desk.topology;
    declare(&live.connection, topology).await?;
    let prefetch = if careful {
        CAREFUL
    } else {
        desk.rules.prefetch
    };
    let limited = live.channel.basic_qos(prefetch, BasicQosOptions::default());
    answered("limiting what is taken at once", limited).await?;
    let queue = short(&topology.queue);
    let (options, arguments) = (BasicConsumeOptions::default(), FieldTable::default());
    let consumer = live
        .channel
        .basic_consume(queue, short(""), options, arguments);
    answered(&format!("consuming {}", topology.queue), consumer).await
}

/// Takes no more, gives back what nobody began, and waits for the others.
async fn stop<C>(
    desk: &Desk<C>,
    live: &Live,
    mut consumer: lapin::Consumer,
    waiting: VecDeque<Delivered>,
    mut tasks: JoinSet<()>,
) {
    let cancelled = live
        .channel
        .basic_cancel(consumer.tag(), BasicCancelOptions::default());
    let given_back = async {
        // Where the connection is lost, the broker does it.
        drop(cancelled.await);
        for delivery in waiting {
            give_back(&delivery.acker).await;
        }
        while let Some(Ok(delivery)) = consumer.next().await {
            give_back(&delivery.acker).await;
        }
    };
    drop(timeout(GIVING_BACK, given_back).await);
    drop(timeout(desk.rules.drain_timeout, all_of(&mut tasks)).await);
    // What isn't settled by now is delivered again once the connection is closed.
    tasks.abort_all();
    close(live).await;
}

/// Waits until all have ended, however they do.
pub(super) async fn all_of(tasks: &mut JoinSet<()>) {
    while tasks.join_next().await.is_some() {}
}

/// Ends the session as what it ran ended, if that was by a panic of our own.
fn died(done: Result<(), JoinError>) {
    if let Err(error) = done
        && let Ok(panic) = error.try_into_panic()
    {
        std::panic::resume_unwind(panic);
    }
}
