use std::time::Duration;

use futures_util::future::join_all;
use lapin::BasicProperties;
use mamparo_durable::events::{Event, Published};
use mamparo_testkit::private::PrivateRabbit;
use mamparo_testkit::proxy::{Fault, FaultProxy};

use super::support::{depth, look, patient, publish, publisher, settings, take, topology};
use crate::message::header;
use crate::{Message, Publisher, Settings, Trouble};

#[tokio::test]
async fn what_is_published_is_in_its_queue() {
    let topology = topology();
    let publisher = publisher(&topology).await;
    let message = Message::new("hola")
        .id("7")
        .header("traceparent", "00-1-2-01")
        .content_type("text/plain");
    publish(&publisher, &topology, message).await;
    let (_connection, channel) = look().await;
    let (properties, body) = take(&channel, topology.queue()).await;
    assert_eq!(body, b"hola");
    assert_eq!(properties.message_id().as_ref().unwrap().as_str(), "7");
    assert_eq!(*properties.delivery_mode(), Some(2));
}

#[tokio::test]
async fn what_no_queue_takes_is_an_error_that_says_so() {
    let publisher = Publisher::new(settings().await);
    let error = publisher
        .publish("", "nobody", Message::new(""))
        .await
        .unwrap_err();
    assert_eq!(error.trouble(), Trouble::Unroutable);
    assert_eq!(
        error.to_string(),
        "no queue takes a message to the exchange \"\" by the key \"nobody\" (NO_ROUTE): declare and bind one"
    );
    let error = publisher
        .publish("nowhere", "x", Message::new(""))
        .await
        .unwrap_err();
    assert_eq!(error.trouble(), Trouble::Unroutable);
    assert_eq!(
        error.to_string(),
        "publishing: NOT_FOUND - no exchange 'nowhere' in vhost '/'"
    );
}

#[tokio::test]
async fn who_publishes_to_a_missing_exchange_disturbs_nobody_for_long() {
    let topology = topology();
    let publisher = publisher(&topology).await;
    let wrong = (0..20).map(|_| publisher.publish("nowhere", "x", Message::new("")));
    let right = (0..20).map(|_| publisher.publish("", topology.queue(), Message::new("")));
    let (wrong, right) = tokio::join!(join_all(wrong), join_all(right));
    assert!(wrong.iter().all(|done| {
        done.as_ref()
            .is_err_and(|error| error.trouble() == Trouble::Unroutable)
    }));
    for done in right {
        done.unwrap();
    }
    let (_connection, channel) = look().await;
    assert!(depth(&channel, topology.queue()).await >= 20);
}

#[tokio::test]
async fn one_message_that_the_broker_refuses_is_refused_alone() {
    let topology = topology();
    let publisher = publisher(&topology).await;
    let publish = |message| publisher.publish("", topology.queue(), message);
    let stranger = BasicProperties::default().with_user_id("nobody".into());
    let right = (0..50).map(|_| publish(Message::new("")));
    let (wrong, right) = tokio::join!(
        publish(Message::with_properties("", stranger)),
        join_all(right)
    );
    let wrong = wrong.unwrap_err();
    assert_eq!(wrong.trouble(), Trouble::Mismatch, "{wrong}");
    for done in right {
        done.unwrap();
    }
}

#[tokio::test]
async fn a_text_where_copies_are_named_is_refused_before_it_closes_the_channel() {
    let publisher = Publisher::new(patient("amqp://guest:guest@127.0.0.1:1/%2f"));
    for name in ["CC", "BCC"] {
        let message = Message::new("").header(name, "elsewhere");
        let error = publisher.publish("", "q", message).await.unwrap_err();
        assert_eq!(error.trouble(), Trouble::Mismatch, "{error}");
    }
}

#[tokio::test]
async fn a_wrong_password_is_one_clear_line() {
    let address = PrivateRabbit::shared().await.address();
    let publisher = Publisher::new(patient(&format!("amqp://guest:wrong@{address}/%2f")));
    let error = publisher
        .publish("", "q", Message::new(""))
        .await
        .unwrap_err();
    assert_eq!(error.trouble(), Trouble::Refused);
    let said = error.to_string();
    assert!(
        said.starts_with(&format!(
            "RabbitMQ at {address} as guest: ACCESS_REFUSED - Login was refused"
        )),
        "{said}"
    );
    assert!(
        !said.contains('\n') && !format!("{error:?} {publisher:?}").contains("wrong"),
        "the password is told: {error:?}"
    );
}

#[tokio::test]
async fn a_virtual_host_that_is_not_there_is_one_clear_line() {
    let address = PrivateRabbit::shared().await.address();
    let publisher = Publisher::new(patient(&format!("amqp://guest:guest@{address}/shop")));
    let error = publisher
        .publish("", "q", Message::new(""))
        .await
        .unwrap_err();
    assert_eq!(error.trouble(), Trouble::Refused);
    assert!(error.to_string().contains("shop"), "{error}");
}

#[tokio::test]
async fn a_broker_that_is_away_is_told_within_the_time_limit() {
    let limit = Duration::from_millis(300);
    let settings = Settings::builder("amqp://guest:guest@127.0.0.1:1/%2f")
        .publish_timeout(limit)
        .build()
        .unwrap();
    let began = mamparo_core::clock::now();
    let error = Publisher::new(settings)
        .publish("", "q", Message::new(""))
        .await
        .unwrap_err();
    assert!(mamparo_core::clock::now() - began < Duration::from_secs(5));
    assert_eq!(error.trouble(), Trouble::Unconfirmed);
    let said = error.to_string();
    let expected = "RabbitMQ has not confirmed a message within 300ms; it may have it: RabbitMQ at 127.0.0.1:1 as guest: ";
    assert!(said.starts_with(expected), "{said}");
}

#[tokio::test]
async fn a_connection_that_is_lost_is_made_again_and_what_was_not_confirmed_is_published_again() {
    let server = PrivateRabbit::shared().await;
    let proxy = FaultProxy::start(server.address()).await;
    let topology = topology();
    let publisher = Publisher::new(patient(&server.url_at(proxy.address())));
    publisher.declare(&topology).await.unwrap();
    publish(&publisher, &topology, Message::new("before")).await;
    proxy.set(Fault::ResetAfter(0)).await;
    let sent = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        proxy.set(Fault::None).await;
    };
    let ((), published) = tokio::join!(
        sent,
        publisher.publish("", topology.queue(), Message::new("after"))
    );
    published.unwrap();
    assert!(proxy.connections() > 1);
    let (_connection, channel) = look().await;
    assert_eq!(take(&channel, topology.queue()).await.1, b"before");
    assert_eq!(take(&channel, topology.queue()).await.1, b"after");
}

#[tokio::test]
async fn events_are_published_whole_and_what_no_queue_takes_is_refused_alone() {
    let topology = topology();
    let publisher = publisher(&topology).await;
    let event = |id: &str, queue: &str| {
        let event = Event::builder(id).to("", queue).payload("{}");
        let event = event
            .content_type("application/json")
            .header("traceparent", "00-1-2-01");
        event.build().unwrap()
    };
    let events = [
        event("order-7/placed", topology.queue()),
        event("lost", "nobody"),
        event("order-8/placed", topology.queue()),
    ];
    let published = events
        .iter()
        .map(|event| mamparo_durable::events::Publisher::publish(&publisher, event));
    let results = join_all(published).await;
    assert_eq!([&results[0], &results[2]], [&Published::Confirmed; 2]);
    assert!(matches!(&results[1], Published::Refused(why) if why.starts_with("no queue takes")));
    let (_connection, channel) = look().await;
    let (properties, body) = take(&channel, topology.queue()).await;
    assert_eq!(body, b"{}");
    assert_eq!(
        properties.message_id().as_ref().unwrap().as_str(),
        "order-7/placed"
    );
    assert_eq!(
        properties.content_type().as_ref().unwrap().as_str(),
        "application/json"
    );
    assert_eq!(header(&properties, "traceparent"), Some("00-1-2-01"));
    assert!(properties.timestamp().is_some());
}
