//! With a real broker: what a consumer gets can't be made otherwise.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use mamparo_core::BoxError;
use mamparo_durable::events::{self, Event};
use mamparo_rabbitmq::{
    Consumer, DeadLetters, Delivery, Message, Permanent, Publisher, Settings, Topology,
};
use mamparo_testkit::private::PrivateRabbit;
use opentelemetry::Context;
use opentelemetry::trace::{
    FutureExt as _, SpanContext, SpanKind, Status, TraceContextExt as _, Tracer as _,
    TracerProvider as _,
};
use opentelemetry_sdk::trace::SpanData;
use tokio::time::sleep;
use tower::{ServiceBuilder, service_fn};

use super::{ProcessLayer, TracedPublisher};
use crate::Metrics;
use crate::testing::{Counted, Kept, Look as _};

const PATIENCE: Duration = Duration::from_secs(60);

/// A queue of its own for each test, and who publishes to it and records.
struct Shop {
    settings: Settings,
    topology: Topology,
    publisher: TracedPublisher,
    kept: Kept,
}

impl Shop {
    async fn open() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let url = PrivateRabbit::shared().await.url();
        let builder = Settings::builder(&url).connect_timeout(Duration::from_secs(20));
        let builder = builder.publish_timeout(Duration::from_secs(20));
        let settings = builder.build().unwrap();
        let queue = format!("traced{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let topology = Topology::builder(queue).delay(Duration::from_millis(100));
        let topology = topology.build().unwrap();
        let kept = Kept::all();
        let publisher = TracedPublisher::new(Publisher::new(settings.clone()));
        let publisher = publisher.tracer_provider(&kept.provider);
        publisher.publisher().declare(&topology).await.unwrap();
        Self {
            settings,
            topology,
            publisher,
            kept,
        }
    }

    fn queue(&self) -> &str {
        self.topology.queue()
    }

    async fn publish(&self, message: Message) {
        let published = self.publisher.publish("", self.queue(), message).await;
        published.unwrap();
    }

    /// Handles messages until so many attempts have been recorded, and returns these.
    async fn handle(&self, attempts: usize) -> Vec<SpanData> {
        let layer = ProcessLayer::new().tracer_provider(&self.kept.provider);
        let handler = ServiceBuilder::new()
            .layer(layer)
            .service(service_fn(handle));
        let consumer = Consumer::builder(self.settings.clone(), self.topology.clone());
        let consumer = consumer.concurrency(1).build().unwrap();
        let enough = async {
            while self.processed().len() < attempts {
                sleep(Duration::from_millis(10)).await;
            }
        };
        let ran = tokio::time::timeout(PATIENCE, consumer.run(handler, enough)).await;
        ran.unwrap().unwrap();
        self.processed()
    }

    fn processed(&self) -> Vec<SpanData> {
        let spans = self.kept.spans().into_iter();
        spans
            .filter(|span| span.name.starts_with("process "))
            .collect()
    }
}

/// Fails at the first attempt, or as the message says.
async fn handle(delivery: Delivery) -> Result<(), BoxError> {
    match (delivery.body().as_ref(), delivery.attempt()) {
        (b"poison", _) => Err(Permanent::new("poison").into()),
        (b"panic", _) => panic!("a bug"),
        (_, 1) => Err("not yet".into()),
        _ => Ok(()),
    }
}

fn links(span: &SpanData) -> Vec<&SpanContext> {
    span.links.iter().map(|link| &link.span_context).collect()
}

fn same(one: &SpanContext, other: &SpanContext) -> bool {
    (one.trace_id(), one.span_id()) == (other.trace_id(), other.span_id())
}

#[tokio::test]
async fn each_attempt_is_a_trace_of_its_own_that_links_the_span_which_published_the_message() {
    let shop = Shop::open().await;
    let tracer = shop.kept.provider.tracer("test");
    let checkout = Context::new().with_span(tracer.start("checkout"));
    let message = Message::new("").id("order-7");
    shop.publish(message).with_context(checkout.clone()).await;
    let attempts = shop.handle(2).await;

    let sent = &shop.kept.spans()[0];
    assert_eq!(sent.name, format!("publish {}", shop.queue()));
    assert_eq!(sent.span_kind, SpanKind::Producer);
    assert_eq!(
        sent.parent_span_id,
        checkout.span().span_context().span_id()
    );
    assert_eq!(sent.status, Status::Unset);
    for (key, value) in [
        ("messaging.system", "rabbitmq"),
        ("messaging.operation.name", "publish"),
        ("messaging.operation.type", "send"),
        ("messaging.destination.name", shop.queue()),
        ("messaging.rabbitmq.destination.routing_key", shop.queue()),
        ("messaging.message.id", "order-7"),
    ] {
        assert_eq!(sent.text(key).as_deref(), Some(value), "{key}");
    }
    for (span, (attempt, verdict)) in attempts.iter().zip([("1", "other"), ("2", "success")]) {
        assert_eq!(span.name, format!("process {}", shop.queue()));
        assert_eq!(span.span_kind, SpanKind::Consumer);
        assert!(same(links(span)[0], &sent.span_context), "{span:?}");
        assert_ne!(span.span_context.trace_id(), sent.span_context.trace_id());
        let said = |key| span.text(key);
        assert_eq!(said("messaging.operation.type").unwrap(), "process");
        assert_eq!(said("messaging.message.id").unwrap(), "order-7");
        assert_eq!(said("mamparo.message.attempt").unwrap(), attempt);
        assert_eq!(said("mamparo.attempt.verdict").unwrap(), verdict);
    }
    assert_eq!(attempts[0].status, Status::error(""));
    assert_eq!(attempts[1].status, Status::Unset);
}

#[tokio::test]
async fn a_message_that_was_made_elsewhere_keeps_its_traceparent_and_is_linked() {
    let shop = Shop::open().await;
    let made_in = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let message = Message::new("poison").header("traceparent", made_in);
    shop.publish(message).await;
    let event = Event::builder("event-1").to("", shop.queue());
    let event = event.header("traceparent", made_in).build().unwrap();
    events::Publisher::publish(&shop.publisher, &event).await;
    let attempts = shop.handle(3).await;
    let spans = shop.kept.spans();
    let sent = spans.iter().filter(|span| span.name.starts_with("publish"));
    let sent: Vec<_> = sent.collect();
    assert_eq!(sent.len(), 2);
    assert!(sent.iter().all(|span| span.span_kind == SpanKind::Client));
    for span in sent.into_iter().chain(&attempts) {
        let [link] = links(span)[..] else {
            panic!("{span:?}");
        };
        assert_eq!(link.span_id().to_string(), "b7ad6b7169203331");
    }
    let errors: Vec<_> = attempts
        .iter()
        .map(|span| span.text("error.type"))
        .collect();
    assert!(errors.contains(&Some("client".to_owned())), "{errors:?}");
}

#[tokio::test]
async fn a_handler_that_panics_and_a_message_with_nowhere_to_go_end_their_spans() {
    let shop = Shop::open().await;
    let refused = shop.publisher.publish("", "nobody", Message::new("")).await;
    refused.unwrap_err();
    let error = shop.kept.only().text("error.type");
    assert_eq!(error.as_deref(), Some("unroutable"));
    shop.publish(Message::new("panic")).await;
    let attempts = shop.handle(1).await;
    assert_eq!(attempts[0].text("error.type").as_deref(), Some("panic"));
    let letters = DeadLetters::in_topology(shop.settings.clone(), shop.topology.clone());
    assert_eq!(letters.depths().await.unwrap().dead, 1);
}

#[tokio::test]
async fn a_header_that_is_no_traceparent_links_nothing() {
    let shop = Shop::open().await;
    for odd in ["", "00-zz-zz-01"] {
        let message = Message::new("poison").header("traceparent", odd);
        shop.publish(message).await;
    }
    let attempts = shop.handle(2).await;
    assert!(attempts.iter().all(|span| links(span).is_empty()));
}

#[test]
fn a_destination_has_the_parts_that_there_are() {
    use super::open::Described;
    for (exchange, routing_key, queue, expected) in [
        ("", "", "", "amq.default"),
        ("", "shop", "", "shop"),
        ("", "shop", "shop", "shop"),
        ("events", "order.placed", "", "events:order.placed"),
        ("events", "order.placed", "shop", "events:order.placed:shop"),
    ] {
        let message = Described {
            operation: ("process", "process"),
            exchange,
            routing_key,
            queue,
            id: None,
        };
        assert_eq!(message.name(), format!("process {expected}"));
    }
}

#[tokio::test]
async fn the_depths_of_a_queue_are_told_for_as_long_as_it_is_watched() {
    let shop = Shop::open().await;
    for body in ["poison", "poison", "panic"] {
        shop.publish(Message::new(body)).await;
    }
    shop.handle(3).await;
    shop.publish(Message::new("")).await;
    let counted = Counted::new();
    let metrics = Metrics::of(&counted.provider);
    let letters = || DeadLetters::in_topology(shop.settings.clone(), shop.topology.clone());
    assert!(metrics.watch_queue(letters(), Duration::ZERO).is_err());
    let watch = metrics
        .watch_queue(letters(), Duration::from_secs(1))
        .unwrap();
    let told = || counted.points("mamparo.message.depth");
    let until = async |there: bool| {
        while told().is_empty() == there {
            sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, until(true)).await.unwrap();
    let queue = shop.queue();
    let expected = [("dead", 3), ("ready", 1), ("retry", 0)].map(|(state, messages)| {
        let attributes = format!("mamparo.message.queue={queue} mamparo.message.state={state}");
        (attributes, messages)
    });
    assert_eq!(told(), expected.into());
    drop(watch);
    tokio::time::timeout(PATIENCE, until(false)).await.unwrap();
}
