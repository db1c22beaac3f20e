//! What goes wrong around a consumer.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use lapin::options::QueueDeleteOptions;
use mamparo_core::BoxError;
use mamparo_testkit::private::PrivateRabbit;
use mamparo_testkit::proxy::{Fault, FaultProxy};
use tokio::sync::Notify;
use tower::service_fn;

use super::support::{
    Running, SOON, Seen, consumer, depth, look, must, patient, publish, publisher, queue, topology,
    until,
};
use crate::topology::peek;
use crate::{Consumer, ConsumerEvent, Delivery, Message, Publisher, Settings, Topology};

async fn fine(_: Delivery) -> Result<(), BoxError> {
    Ok(())
}

#[tokio::test]
async fn a_wrong_password_ends_the_consumer_with_one_clear_line() {
    let address = PrivateRabbit::shared().await.address();
    let settings = patient(&format!("amqp://guest:wrong@{address}/%2f"));
    let running = Running::start(
        Consumer::builder(settings, topology()).build().unwrap(),
        service_fn(fine),
    );
    let said = running.ended().await.unwrap_err().to_string();
    assert!(
        said.starts_with(&format!("RabbitMQ at {address} as guest: ACCESS_REFUSED")),
        "{said}"
    );
    assert!(!said.contains('\n'));
}

#[tokio::test]
async fn queues_that_exist_otherwise_end_the_consumer_and_name_the_difference() {
    let name = queue();
    publisher(&Topology::builder(&name).build().unwrap()).await;
    let other = Topology::builder(&name).delay(SOON).build().unwrap();
    let running = Running::start(consumer(&other).await.build().unwrap(), service_fn(fine));
    let said = running.ended().await.unwrap_err().to_string();
    assert!(said.contains("inequivalent arg 'x-message-ttl'"), "{said}");
}

#[tokio::test]
async fn a_retry_queue_that_was_deleted_is_declared_again() {
    let (topology, seen) = (topology(), Seen::default());
    let publisher = publisher(&topology).await;
    let handler = seen.then(|delivery| async move {
        let first = delivery.attempt() == 1;
        if first { Err("not yet".into()) } else { Ok(()) }
    });
    let running = Running::start(consumer(&topology).await.build().unwrap(), handler);
    running.status.ready().await;
    let (_connection, channel) = look().await;
    let retry = topology.retry(1).0;
    channel
        .queue_delete(retry.as_str().into(), QueueDeleteOptions::default())
        .await
        .unwrap();
    publish(&publisher, &topology, Message::new("")).await;
    until(|| seen.len() == 2).await;
    running.stop().await;
}

#[tokio::test]
async fn a_consumer_waits_for_a_broker_that_is_away_and_is_not_ready() {
    let settings = Settings::builder("amqp://guest:guest@127.0.0.1:1/%2f")
        .build()
        .unwrap();
    let told = Arc::new(Mutex::new(0));
    let consumer = Consumer::builder(settings, topology()).report({
        let told = told.clone();
        move |event| {
            if let ConsumerEvent::Disconnected { error, .. } = event {
                assert!(
                    error.to_string().starts_with("RabbitMQ at 127.0.0.1:1"),
                    "{error}"
                );
                *told.lock().unwrap() += 1;
            }
        }
    });
    let running = Running::start(consumer.build().unwrap(), service_fn(fine));
    until(|| *told.lock().unwrap() > 2).await;
    assert!(!running.status.is_ready());
    running.stop().await;
}

#[tokio::test]
async fn a_consumer_whose_connection_is_lost_connects_again_and_spends_no_attempt() {
    let server = PrivateRabbit::shared().await;
    let proxy = FaultProxy::start(server.address()).await;
    let (topology, seen) = (topology(), Seen::default());
    let publisher = publisher(&topology).await;
    let handler = seen.then(|delivery| async move {
        if is_interrupted(&delivery) {
            std::future::pending::<()>().await;
        }
        Ok(())
    });
    let settings = patient(&server.url_at(proxy.address()));
    let consumer = Consumer::builder(settings, topology.clone())
        .drain_timeout(SOON)
        .build()
        .unwrap();
    let running = Running::start(consumer, handler);
    publish(&publisher, &topology, Message::new("")).await;
    until(|| seen.len() == 1).await;
    proxy.set(Fault::ResetAfter(0)).await;
    // A byte must be on its way for it to be reset: the next message is.
    publish(&publisher, &topology, Message::new("second")).await;
    let status = running.status.clone();
    until(|| !status.is_ready()).await;
    proxy.set(Fault::None).await;
    until(|| seen.len() == 3).await;
    assert!(status.is_ready());
    running.stop().await;
    assert!(seen.all().iter().all(|delivery| delivery.attempt() == 1));
    let (_connection, channel) = look().await;
    assert_eq!(depth(&channel, topology.queue()).await, 0);
}

#[tokio::test]
async fn as_many_at_once_as_one_likes_are_as_many_as_are_taken() {
    let settings = Settings::builder("amqp://guest:guest@127.0.0.1:1/%2f");
    let consumer = Consumer::builder(settings.build().unwrap(), topology()).concurrency(usize::MAX);
    let ran = consumer.build().unwrap().run(service_fn(fine), async {});
    ran.await.unwrap();
}

#[tokio::test]
async fn a_consumer_that_still_declares_its_queues_stops_at_once() {
    let server = PrivateRabbit::shared().await;
    let proxy = FaultProxy::start(server.address()).await;
    proxy.set(Fault::Latency(Duration::from_millis(100))).await;
    let delays = (1..=16).map(Duration::from_secs);
    let topology = Topology::builder(queue()).delays(delays).build().unwrap();
    let settings = patient(&server.url_at(proxy.address()));
    let consumer = Consumer::builder(settings, topology.clone())
        .build()
        .unwrap();
    let running = Running::start(consumer, service_fn(fine));
    let (connection, _channel) = look().await;
    must(async {
        // Each look that finds nothing closes its channel.
        while peek(
            &connection.create_channel().await.unwrap(),
            topology.queue(),
        )
        .await
        .unwrap()
        .is_none()
        {}
    })
    .await;
    let began = mamparo_core::clock::now();
    running.stop().await;
    let took = mamparo_core::clock::now() - began;
    assert!(took < Duration::from_secs(3), "{took:?}");
}

#[tokio::test]
async fn a_broker_that_falls_silent_is_not_waited_for_without_end() {
    let server = PrivateRabbit::shared().await;
    let proxy = FaultProxy::start(server.address()).await;
    let (topology, settings) = (topology(), patient(&server.url_at(proxy.address())));
    let publisher = Publisher::new(settings);
    publisher.declare(&topology).await.unwrap();
    proxy.set(Fault::BlackHole).await;
    let began = mamparo_core::clock::now();
    let error = publisher.declare(&topology).await.unwrap_err();
    let took = mamparo_core::clock::now() - began;
    assert!(error.is_transient(), "{error}");
    assert!(took < Duration::from_secs(15), "{took:?}");
}

/// Cuts the connections, and lets them be made again once the consumer has noticed.
async fn interrupt(proxy: &FaultProxy, running: &Running, publisher: &Publisher, queue: &Topology) {
    proxy.set(Fault::ResetAfter(0)).await;
    publish(publisher, queue, Message::new("second")).await;
    until(|| !running.status.is_ready()).await;
    proxy.set(Fault::None).await;
}

#[tokio::test]
async fn what_fails_after_its_connection_is_lost_is_delivered_again_and_nothing_else() {
    let server = PrivateRabbit::shared().await;
    let proxy = FaultProxy::start(server.address()).await;
    let (topology, seen) = (topology(), Seen::default());
    let publisher = publisher(&topology).await;
    let fail = Arc::new(Notify::new());
    let handler = seen.then({
        let fail = Arc::clone(&fail);
        move |delivery| fail_late(Arc::clone(&fail), delivery)
    });
    let settings = patient(&server.url_at(proxy.address()));
    let consumer = Consumer::builder(settings, topology.clone());
    let running = Running::start(consumer.build().unwrap(), handler);
    publish(&publisher, &topology, Message::new("")).await;
    until(|| seen.len() == 1).await;
    interrupt(&proxy, &running, &publisher, &topology).await;
    until(|| seen.len() == 3).await;
    fail.notify_one();
    // A copy would be back by then.
    tokio::time::sleep(SOON + Duration::from_secs(1)).await;
    running.stop().await;
    let attempts: Vec<u32> = seen.all().iter().map(Delivery::attempt).collect();
    assert_eq!(attempts, [1, 1, 1]);
}

#[tokio::test]
async fn nothing_that_a_consumer_began_outlives_it() {
    let server = PrivateRabbit::shared().await;
    let proxy = FaultProxy::start(server.address()).await;
    let (topology, seen) = (topology(), Seen::default());
    let publisher = publisher(&topology).await;
    let alive = Arc::new(());
    let handler = seen.then({
        let alive = Arc::downgrade(&alive);
        move |delivery| hang(alive.upgrade(), delivery)
    });
    let settings = patient(&server.url_at(proxy.address()));
    let consumer = Consumer::builder(settings, topology.clone()).drain_timeout(SOON);
    let running = Running::start(consumer.build().unwrap(), handler);
    publish(&publisher, &topology, Message::new("")).await;
    until(|| seen.len() == 1).await;
    interrupt(&proxy, &running, &publisher, &topology).await;
    until(|| seen.len() == 3).await;
    assert_eq!(Arc::strong_count(&alive), 2);
    running.stop().await;
    assert_eq!(Arc::strong_count(&alive), 1);
}

async fn fail_late(fail: Arc<Notify>, delivery: Delivery) -> Result<(), BoxError> {
    if !is_interrupted(&delivery) {
        return Ok(());
    }
    fail.notified().await;
    Err("too late".into())
}

async fn hang(alive: Option<Arc<()>>, delivery: Delivery) -> Result<(), BoxError> {
    if is_interrupted(&delivery) {
        std::future::pending::<()>().await;
    }
    drop(alive);
    Ok(())
}

/// The delivery that is interrupted.
fn is_interrupted(delivery: &Delivery) -> bool {
    !delivery.is_redelivered() && delivery.body().is_empty()
}
