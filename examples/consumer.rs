//! Shows a RabbitMQ consumer: a dependency that is away for a moment, a message that nobody can read, and the operator's part.
//!
//! Takes the URL of a broker, in which it declares the queues of `example`; without one it starts a broker of its own.

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::time::Duration;

use mamparo::bulkhead::{BulkheadLayer, BulkheadPolicy};
use mamparo_core::{BoxError, Plain};
use mamparo_rabbitmq::{
    Consumer, ConsumerEvent, DeadLetters, Delivery, Message, Permanent, Publisher, Selection,
    Settings, Topology,
};
use mamparo_testkit::private::PrivateRabbit;
use tokio::sync::mpsc;
use tower::{ServiceBuilder, service_fn};

/// Charges an order; the provider is away for the first attempt.
async fn charge(delivery: Delivery) -> Result<(), BoxError> {
    let text = std::str::from_utf8(delivery.body()).map_err(Permanent::new)?;
    let cents: u32 = text.parse().map_err(Permanent::new)?;
    if delivery.attempt() == 1 {
        return Err("the provider is away".into());
    }
    println!("charged {cents} cents at attempt {}", delivery.attempt());
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let mut own = None;
    let url = match std::env::args().nth(1) {
        Some(url) => url,
        None => own.insert(PrivateRabbit::start().await).url(),
    };
    let settings = Settings::builder(url).name("example").build()?;
    let topology = Topology::builder("example")
        .delays([1, 5].map(Duration::from_secs))
        .owner("team payments")
        .runbook("https://wiki.example/payments-dlq")
        .build()?;

    let publisher = Publisher::new(settings.clone());
    publisher.declare(&topology).await?;
    for (id, body) in [("order-1", "500"), ("order-2", "five hundred")] {
        let message = Message::new(body).id(id);
        publisher.publish("", topology.queue(), message).await?;
    }

    // Layers of the call plane stand before the handler as before any other service.
    let bulkhead = BulkheadPolicy::builder().limit(4).build()?;
    let service = ServiceBuilder::new()
        .layer(BulkheadLayer::new(bulkhead, Plain::idempotent()))
        .service(service_fn(charge));
    let (told, mut settled) = mpsc::unbounded_channel();
    let consumer = Consumer::builder(settings.clone(), topology.clone())
        .report(move |event| {
            if let ConsumerEvent::Settled {
                delivery, settled, ..
            } = event
            {
                println!("{}: {settled:?}", delivery.message_id().unwrap_or("?"));
                told.send(()).ok(); // unless nobody counts any more
            }
        })
        .build()?;
    // Until three attempts are settled: two of the order that can be read, one of the other.
    let stop = async {
        for _ in 0..3 {
            settled.recv().await;
        }
    };
    consumer.run(service, stop).await?;

    let letters = DeadLetters::in_topology(settings, topology);
    let all = Selection::first(10);
    for letter in letters.discard(all, std::future::pending()).await? {
        println!(
            "discarded {}: {} ({}), ask {}",
            letter.message_id().unwrap_or("?"),
            letter.reason(),
            letter.detail(),
            letter.owner()
        );
    }
    Ok(())
}
