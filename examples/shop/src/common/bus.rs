//! The queues, and what runs over them: relay, watchdogs, consumer.

use std::sync::Arc;
use std::time::Duration;

use mamparo::serve::Readiness;
use mamparo_core::BoxError;
use mamparo_durable::events::Relay;
use mamparo_durable::handler::Listeners;
use mamparo_durable::supervise::Supervisor;
use mamparo_rabbitmq::{Consumer, DeadLetters, Delivery, Permanent, Topology, Trouble};
use mamparo_telemetry::Metrics;
use mamparo_telemetry::rabbitmq::{ProcessLayer, TracedPublisher};
use serde_json::Value;
use tower::ServiceBuilder;

use super::serve::Stop;
use super::settings::Settings;
use super::shop::Shop;
use super::telemetry::log;

/// A topic exchange that every broker has.
pub(crate) const EXCHANGE: &str = "amq.topic";

/// What to do about dead letters.
const RUNBOOK: &str = "examples/shop/README.md#dead-letters";

/// Between two looks at the depths of a queue, or at whether the broker is there.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Each service's queue, and what it hears.
pub(crate) const QUEUES: [(&str, &str, &[&str]); 4] = [
    ("orders", "orders.saga", &["stock.*", "payment.*"]),
    ("inventory", "inventory.orders", &["order.*"]),
    (
        "payments",
        "payments.stock",
        &["stock.reserved", "order.cancelled"],
    ),
    (
        "notifications",
        "notifications.orders",
        &["order.confirmed", "order.cancelled", "payment.refunded"],
    ),
];

/// An event that was heard.
#[derive(Clone, Debug)]
pub(crate) struct Heard {
    pub(crate) id: String,
    /// Such as `stock.reserved`.
    pub(crate) what: String,
    pub(crate) order: String,
    pub(crate) body: Value,
}

/// Who hears events.
pub(crate) trait Hears: Clone + Send + Sync + 'static {
    fn hear(self, heard: Heard) -> impl Future<Output = Result<(), BoxError>> + Send;
}

/// Names the queues of a service.
pub(crate) fn topology(service: &str, settings: &Settings) -> Result<Topology, BoxError> {
    let found = QUEUES.iter().find(|(of, ..)| *of == service);
    let (_, queue, heard) = found.ok_or_else(|| format!("{service} has no queue"))?;
    let topology = Topology::builder(*queue)
        .delay(settings.consumer.retry_delay)
        .owner(format!("team {service}"))
        .runbook(RUNBOOK);
    let bound = heard
        .iter()
        .fold(topology, |topology, what| topology.bind(EXCHANGE, *what));
    Ok(bound.build()?)
}

/// A service's part of the bus, before it runs.
pub(crate) struct Bus {
    shop: Shop,
    consumer: Consumer,
    workers: Supervisor,
}

impl Bus {
    /// With the service's relay, besides which it may have other workers.
    pub(crate) fn open(shop: &Shop) -> Result<Self, BoxError> {
        let topology = topology(&shop.service, &shop.settings)?;
        let counts = shop.counts.clone();
        let rules = &shop.settings.consumer;
        let consumer = Consumer::builder(shop.rabbit.clone(), topology)
            .prefetch(rules.prefetch)
            .max_attempts(rules.max_attempts)
            .report(move |event| counts.consumer(event));
        let (store, publisher) = (
            Arc::new(shop.events.clone()),
            Arc::new(TracedPublisher::new(shop.publisher.clone())),
        );
        let relay = Relay::builder(&shop.service, store, publisher).build()?;
        let heard = Listeners::default().and(shop.counts.clone());
        let supervisor = Supervisor::new().listener(Arc::new(heard.and(Metrics::new())));
        Ok(Self {
            consumer: consumer.build()?,
            workers: supervisor.worker(relay),
            shop: shop.clone(),
        })
    }

    /// Adds a watchdog, or another worker.
    pub(crate) fn worker(mut self, worker: impl mamparo_durable::supervise::Worker) -> Self {
        self.workers = self.workers.worker(worker);
        self
    }

    /// Ready while the consumer has its connection.
    pub(crate) fn readiness(&self) -> Result<Readiness, BoxError> {
        let status = self.consumer.status();
        let check = move || status.clone().check();
        Ok(Readiness::builder().check("consumer", check).build()?)
    }

    /// Works until told to stop; an error ends the process.
    pub(crate) async fn run(self, hears: impl Hears, stop: Stop) -> Result<(), BoxError> {
        let own = topology(&self.shop.service, &self.shop.settings)?;
        tokio::select! {
            declared = declare_all(&self.shop) => declared?,
            () = stop.clone().told() => return Ok(()),
        }
        let letters = DeadLetters::in_topology(self.shop.rabbit.clone(), own);
        let _watched = Metrics::new().watch_queue(letters, LOOK_EVERY)?;
        let running = self.workers.run();
        let service =
            ServiceBuilder::new()
                .layer(ProcessLayer::new())
                .service_fn(move |delivery| {
                    let (hears, heard) = (hears.clone(), read(&delivery));
                    async move { hears.hear(heard?).await }
                });
        tokio::select! {
            ended = self.consumer.run(service, stop.told()) => ended?,
            died = running.ended() => died?,
        }
        Ok(running.stop().await?)
    }
}

/// All queues of the shop, so that no event is refused because its consumer has never run. A broker that is away is waited for.
async fn declare_all(shop: &Shop) -> Result<(), BoxError> {
    for (service, ..) in QUEUES {
        let topology = topology(service, &shop.settings)?;
        while let Err(error) = shop.publisher.declare(&topology).await {
            log(&error);
            if error.trouble() != Trouble::Unavailable {
                return Err(error.into());
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
    Ok(())
}

/// Reads a message; one that can't be read never will be.
fn read(delivery: &Delivery) -> Result<Heard, Permanent> {
    let id = delivery
        .message_id()
        .ok_or_else(|| Permanent::new("the message has no id"))?;
    let body: Value = serde_json::from_slice(delivery.body()).map_err(Permanent::new)?;
    let order = body["order"].as_str();
    let order = order.ok_or_else(|| Permanent::new("the field \"order\" is missing"))?;
    Ok(Heard {
        id: id.to_owned(),
        what: delivery.routing_key().to_owned(),
        order: order.to_owned(),
        body,
    })
}
