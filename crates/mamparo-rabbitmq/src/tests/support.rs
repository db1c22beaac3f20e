use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lapin::options::{BasicAckOptions, BasicGetOptions};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Channel, Connection};
use mamparo_core::BoxError;
use mamparo_testkit::private::PrivateRabbit;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tower::service_fn;
use tower_service::Service;

use crate::link::{Live, open};
use crate::topology::peek;
use crate::{
    Consumer, ConsumerBuilder, ConsumerError, ConsumerStatus, Delivery, Message, Publisher,
    Settings, Topology,
};

/// As long as anything is waited for that must happen, on a machine with other things to do.
pub(crate) const PATIENCE: Duration = Duration::from_secs(40);

/// A delay that a test waits for.
pub(crate) const SOON: Duration = Duration::from_millis(400);

pub(crate) async fn settings() -> Settings {
    let url = PrivateRabbit::shared().await.url();
    patient(&url)
}

pub(crate) fn patient(url: &str) -> Settings {
    let builder = Settings::builder(url).connect_timeout(Duration::from_secs(20));
    builder
        .publish_timeout(Duration::from_secs(20))
        .build()
        .unwrap()
}

/// A name that no other test of this broker has.
pub(crate) fn queue() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    format!("test{}", NUMBER.fetch_add(1, Ordering::Relaxed))
}

pub(crate) fn topology() -> Topology {
    Topology::builder(queue()).delay(SOON).build().unwrap()
}

/// A publisher that has declared the queues.
pub(crate) async fn publisher(topology: &Topology) -> Publisher {
    let publisher = Publisher::new(settings().await);
    publisher.declare(topology).await.unwrap();
    publisher
}

/// A connection to look with; it must live as long as its channel.
pub(crate) async fn look() -> (Connection, Channel) {
    let Live {
        connection,
        channel,
    } = open(&settings().await).await.unwrap();
    (connection, channel)
}

pub(crate) async fn depth(channel: &Channel, queue: &str) -> u32 {
    peek(channel, queue).await.unwrap().expect("a queue")
}

/// Takes one that must come, for good.
pub(crate) async fn take(channel: &Channel, queue: &str) -> (BasicProperties, Vec<u8>) {
    let taken = async {
        loop {
            let got = channel
                .basic_get(queue.into(), BasicGetOptions::default())
                .await
                .unwrap();
            if let Some(got) = got {
                got.delivery
                    .acker
                    .ack(BasicAckOptions::default())
                    .await
                    .unwrap();
                return (got.delivery.properties, got.delivery.data);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    must(taken).await
}

/// Waits for what must happen.
pub(crate) async fn must<T>(future: impl Future<Output = T>) -> T {
    let done = tokio::time::timeout(PATIENCE, future).await;
    done.unwrap_or_else(|_| panic!("it has not happened after {PATIENCE:?}"))
}

/// Waits until a condition holds.
pub(crate) async fn until(mut condition: impl FnMut() -> bool) {
    must(async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}

pub(crate) fn text(value: &str) -> AMQPValue {
    AMQPValue::LongString(value.into())
}

pub(crate) fn with_headers(
    headers: impl IntoIterator<Item = (&'static str, AMQPValue)>,
) -> BasicProperties {
    let mut table = FieldTable::default();
    for (name, value) in headers {
        table.insert(name.into(), value);
    }
    BasicProperties::default().with_headers(table)
}

/// What a consumer takes.
pub(crate) trait Handler:
    Service<Delivery, Response = (), Error = BoxError, Future: Send> + Clone + Send + Sync + 'static
{
}

impl<S> Handler for S where
    S: Service<Delivery, Response = (), Error = BoxError, Future: Send>
        + Clone
        + Send
        + Sync
        + 'static
{
}

/// What a handler was given, in that order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen(Arc<Mutex<Vec<(Delivery, tokio::time::Instant)>>>);

impl Seen {
    pub(crate) fn add(&self, delivery: Delivery) {
        self.0
            .lock()
            .unwrap()
            .push((delivery, mamparo_core::clock::now()));
    }

    /// Notes each, then does this.
    pub(crate) fn then<F, D>(&self, handle: F) -> impl Handler + use<F, D>
    where
        F: Fn(Delivery) -> D + Clone + Send + Sync + 'static,
        D: Future<Output = Result<(), BoxError>> + Send + 'static,
    {
        let seen = self.clone();
        service_fn(move |delivery: Delivery| {
            seen.add(delivery.clone());
            handle(delivery)
        })
    }

    pub(crate) fn all(&self) -> Vec<Delivery> {
        self.0
            .lock()
            .unwrap()
            .iter()
            .map(|(delivery, _)| delivery.clone())
            .collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    /// The times between one and the next.
    pub(crate) fn gaps(&self) -> Vec<Duration> {
        let seen = self.0.lock().unwrap();
        seen.windows(2).map(|pair| pair[1].1 - pair[0].1).collect()
    }
}

/// A consumer at work.
pub(crate) struct Running {
    pub(crate) status: ConsumerStatus,
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<(), ConsumerError>>,
}

impl Running {
    pub(crate) fn start(consumer: Consumer, service: impl Handler) -> Self {
        let (stop, stopped) = oneshot::channel();
        let status = consumer.status();
        let task = tokio::spawn(consumer.run(service, async { drop(stopped.await) }));
        Self { status, stop, task }
    }

    pub(crate) async fn stop(self) {
        self.stop.send(()).unwrap();
        must(self.task).await.unwrap().unwrap();
    }

    pub(crate) async fn ended(self) -> Result<(), ConsumerError> {
        must(self.task).await.unwrap()
    }
}

pub(crate) async fn consumer(topology: &Topology) -> ConsumerBuilder {
    Consumer::builder(settings().await, topology.clone())
}

pub(crate) async fn publish(publisher: &Publisher, topology: &Topology, message: Message) {
    publisher
        .publish("", topology.queue(), message)
        .await
        .unwrap();
}
