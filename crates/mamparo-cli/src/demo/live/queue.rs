//! A consumer of a queue in a RabbitMQ, and messages for it.

use std::time::Duration;

use mamparo_core::BoxError;
use mamparo_rabbitmq::{
    Consumer, DeadLetters, Delivery, Message, Permanent, Publisher, Selection, Settings, Topology,
};
use mamparo_telemetry::Metrics;
use mamparo_telemetry::rabbitmq::QueueWatch;
use tokio::time::interval;
use tower::service_fn;

/// The queue, declared in the broker and left there.
const QUEUE: &str = "mamparo.demo";

/// What nobody can handle.
const POISON: &[u8] = b"poison";

/// As many messages come in each second.
const DEMAND: u32 = 4;

/// As many dead letters as an earlier demonstration may have left.
const LEFT: usize = 1_000;

/// The queue, looked at for as long as this is kept.
#[derive(Debug)]
pub(super) struct Queue {
    publisher: Publisher,
    _watch: QueueWatch,
}

impl Queue {
    /// Declares it, and consumes what is sent to it, until the runtime ends.
    pub(super) async fn open(url: &str, metrics: &Metrics) -> Result<Self, BoxError> {
        let settings = Settings::builder(url).name("mamparo demo").build()?;
        let topology = Topology::builder(QUEUE).build()?;
        let publisher = Publisher::new(settings.clone());
        publisher.declare(&topology).await?;
        let letters = DeadLetters::in_topology(settings.clone(), topology.clone());
        let left = letters.discard(Selection::first(LEFT), std::future::pending());
        drop(left.await?);
        let watch = metrics.watch_queue(letters, Duration::from_secs(1))?;
        let consumer = Consumer::builder(settings, topology).build()?;
        tokio::spawn(consumer.run(service_fn(handle), std::future::pending()));
        tokio::spawn(demand(publisher.clone()));
        Ok(Self {
            publisher,
            _watch: watch,
        })
    }

    /// Sends what nobody can handle.
    pub(super) async fn make_trouble(&self) -> Result<(), BoxError> {
        let poison = Message::new(POISON).id("poison");
        Ok(self.publisher.publish("", QUEUE, poison).await?)
    }
}

async fn handle(delivery: Delivery) -> Result<(), BoxError> {
    match &delivery.body()[..] {
        POISON => Err(Permanent::new("nobody can read it").into()),
        _ => Ok(()),
    }
}

async fn demand(publisher: Publisher) {
    let mut ticks = interval(Duration::from_secs(1) / DEMAND);
    for number in 0_u64.. {
        ticks.tick().await;
        let message = Message::new("{}").id(&format!("message-{number}"));
        // A broker that is away is seen by its queue, of which nothing is told.
        drop(publisher.publish("", QUEUE, message).await);
    }
}
