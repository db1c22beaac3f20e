use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lapin::BasicProperties;
use lapin::types::AMQPValue;
use mamparo::bulkhead::{BulkheadLayer, BulkheadPolicy};
use mamparo_core::{BoxError, Classify, Head, Plain, Verdict};
use tower::{ServiceBuilder, service_fn};

use super::support::{
    Handler, PATIENCE, Running, SOON, Seen, consumer, depth, look, must, publish, publisher, queue,
    take, text, topology, until, with_headers,
};
use crate::message::header;
use crate::{Delivery, Message, Panics, Permanent, Topology, headers};

/// Fails as the body says.
async fn obey(delivery: Delivery) -> Result<(), BoxError> {
    match &**delivery.body() {
        b"fail" => Err("the database is away".into()),
        b"poison" => Err(Permanent::new("no JSON").into()),
        b"panic" => panic!("a bug"),
        b"hang" => std::future::pending().await,
        _ => Ok(()),
    }
}

fn seeing(seen: &Seen) -> impl Handler + use<> {
    seen.then(obey)
}

#[tokio::test]
async fn what_succeeds_is_gone() {
    let (topology, seen) = (topology(), Seen::default());
    let publisher = publisher(&topology).await;
    let running = Running::start(consumer(&topology).await.build().unwrap(), seeing(&seen));
    publish(&publisher, &topology, Message::new("ok").id("1")).await;
    until(|| seen.len() == 1).await;
    running.stop().await;
    let (_connection, channel) = look().await;
    for queue in [
        topology.queue(),
        &topology.retry(1).0,
        &topology.dead_letters(),
    ] {
        assert_eq!(depth(&channel, queue).await, 0, "{queue}");
    }
    let delivery = &seen.all()[0];
    assert_eq!(
        (
            delivery.attempt(),
            delivery.message_id(),
            delivery.is_redelivered()
        ),
        (1, Some("1"), false)
    );
}

#[tokio::test]
async fn what_may_pass_is_tried_five_times_each_after_its_delay_and_kept_whole() {
    let (topology, seen) = (topology(), Seen::default());
    let publisher = publisher(&topology).await;
    let running = Running::start(consumer(&topology).await.build().unwrap(), seeing(&seen));
    let original = with_headers([
        ("traceparent", text("00-1-2-01")),
        ("no-utf8", AMQPValue::LongString(vec![0xff].into())),
    ]);
    let message = Message::with_properties(
        "fail",
        original.with_message_id("m".into()).with_type("t".into()),
    );
    publish(&publisher, &topology, message).await;
    let (_connection, channel) = look().await;
    let (dead, body) = take(&channel, &topology.dead_letters()).await;
    running.stop().await;
    let attempts: Vec<u32> = seen.all().iter().map(Delivery::attempt).collect();
    assert_eq!(attempts, [1, 2, 3, 4, 5]);
    for gap in seen.gaps() {
        assert!(gap >= SOON && gap < SOON + PATIENCE / 2, "waited {gap:?}");
    }
    assert_eq!(body, b"fail");
    for delivery in seen.all() {
        assert_eq!(
            kept(delivery.properties()),
            kept(&dead),
            "attempt {}",
            delivery.attempt()
        );
        assert_eq!(
            (delivery.exchange(), delivery.routing_key()),
            ("", topology.queue())
        );
    }
    assert_eq!(header(&dead, headers::DEAD_REASON), Some("exhausted"));
    assert_eq!(
        header(&dead, headers::DEAD_DETAIL),
        Some("the database is away")
    );
    assert_eq!(
        dead.headers().as_ref().unwrap().inner()[headers::ATTEMPTS],
        AMQPValue::LongUInt(5)
    );
}

/// What a producer said, whatever was added.
fn kept(properties: &BasicProperties) -> BasicProperties {
    let mut kept = lapin::types::FieldTable::default();
    for (name, value) in properties
        .headers()
        .iter()
        .flat_map(|headers| headers.inner())
    {
        if !name.as_str().starts_with("x-") {
            kept.insert(name.clone(), value.clone());
        }
    }
    properties.clone().with_headers(kept)
}

#[tokio::test]
async fn growing_delays_are_waited_in_turn() {
    let delays = [200, 1_200].map(Duration::from_millis);
    let topology = Topology::builder(queue()).delays(delays).build().unwrap();
    let (publisher, seen) = (publisher(&topology).await, Seen::default());
    let running = Running::start(
        consumer(&topology).await.max_attempts(4).build().unwrap(),
        seeing(&seen),
    );
    publish(&publisher, &topology, Message::new("fail")).await;
    until(|| seen.len() == 4).await;
    running.stop().await;
    let gaps = seen.gaps();
    assert!(
        gaps[0] >= delays[0] && gaps[1] >= delays[1] && gaps[2] >= delays[1],
        "{gaps:?}"
    );
}

#[tokio::test]
async fn poison_is_a_dead_letter_at_its_first_failure() {
    let topology = Topology::builder(queue())
        .delay(SOON)
        .owner("team payments")
        .runbook("https://wiki/dlq")
        .build()
        .unwrap();
    let (publisher, seen) = (publisher(&topology).await, Seen::default());
    let running = Running::start(consumer(&topology).await.build().unwrap(), seeing(&seen));
    publish(&publisher, &topology, Message::new("poison")).await;
    let (_connection, channel) = look().await;
    let (dead, body) = take(&channel, &topology.dead_letters()).await;
    running.stop().await;
    assert_eq!((seen.len(), &*body), (1, &b"poison"[..]));
    let told = [
        headers::DEAD_REASON,
        headers::DEAD_DETAIL,
        headers::OWNER,
        headers::RUNBOOK,
    ];
    let told = told.map(|name| header(&dead, name).unwrap_or_default());
    assert_eq!(
        told,
        ["permanent", "no JSON", "team payments", "https://wiki/dlq"]
    );
    assert!(
        header(&dead, headers::DEAD_AT).is_some_and(|at| at.starts_with("20") && at.ends_with('Z'))
    );
}

#[tokio::test]
async fn a_panic_is_a_dead_letter_and_the_next_message_is_handled() {
    let (topology, seen) = (topology(), Seen::default());
    let publisher = publisher(&topology).await;
    let running = Running::start(consumer(&topology).await.build().unwrap(), seeing(&seen));
    publish(&publisher, &topology, Message::new("panic")).await;
    publish(&publisher, &topology, Message::new("ok")).await;
    let (_connection, channel) = look().await;
    let (dead, _) = take(&channel, &topology.dead_letters()).await;
    until(|| seen.len() == 2).await;
    running.stop().await;
    assert_eq!(header(&dead, headers::DEAD_REASON), Some("panic"));
    assert_eq!(
        header(&dead, headers::DEAD_DETAIL),
        Some("the handler panicked: a bug")
    );
}

#[tokio::test]
async fn a_panic_is_tried_again_if_it_is_set_so_and_so_is_what_hangs() {
    let (topology, seen) = (topology(), Seen::default());
    let publisher = publisher(&topology).await;
    let built = consumer(&topology)
        .await
        .panics(Panics::Transient)
        .max_attempts(2);
    let built = built
        .handler_timeout(Duration::from_millis(100))
        .build()
        .unwrap();
    let running = Running::start(built, seeing(&seen));
    publish(&publisher, &topology, Message::new("panic")).await;
    publish(&publisher, &topology, Message::new("hang")).await;
    let (_connection, channel) = look().await;
    let mut details = Vec::new();
    for _ in 0..2 {
        let (dead, _) = take(&channel, &topology.dead_letters()).await;
        assert_eq!(header(&dead, headers::DEAD_REASON), Some("exhausted"));
        details.push(header(&dead, headers::DEAD_DETAIL).unwrap().to_owned());
    }
    running.stop().await;
    details.sort();
    assert_eq!(
        details,
        ["no answer within 100ms", "the handler panicked: a bug"]
    );
    assert_eq!(seen.len(), 4);
}

#[tokio::test]
async fn forged_attempts_neither_save_a_message_nor_lose_it() {
    let (topology, seen) = (topology(), Seen::default());
    let publisher = publisher(&topology).await;
    let running = Running::start(consumer(&topology).await.build().unwrap(), seeing(&seen));
    for forged in [
        AMQPValue::LongLongInt(i64::MIN),
        AMQPValue::LongLongInt(i64::MAX),
        text("many"),
    ] {
        let message = Message::with_properties("fail", with_headers([(headers::ATTEMPTS, forged)]));
        publish(&publisher, &topology, message).await;
    }
    let (_connection, channel) = look().await;
    for _ in 0..3 {
        let (dead, _) = take(&channel, &topology.dead_letters()).await;
        assert_eq!(header(&dead, headers::DEAD_REASON), Some("exhausted"));
    }
    running.stop().await;
    let mut attempts: Vec<u32> = seen.all().iter().map(Delivery::attempt).collect();
    attempts.sort_unstable();
    assert_eq!(attempts, [1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 5]);
}

#[tokio::test]
async fn a_body_that_is_too_big_is_a_dead_letter_unread() {
    let (topology, seen) = (topology(), Seen::default());
    let publisher = publisher(&topology).await;
    let running = Running::start(
        consumer(&topology)
            .await
            .max_bytes(1_000_000)
            .build()
            .unwrap(),
        seeing(&seen),
    );
    publish(&publisher, &topology, Message::new(vec![7; 20_000_000])).await;
    let (_connection, channel) = look().await;
    let (dead, body) = take(&channel, &topology.dead_letters()).await;
    running.stop().await;
    assert_eq!((seen.len(), body.len()), (0, 20_000_000));
    assert_eq!(
        header(&dead, headers::DEAD_DETAIL),
        Some("20000000 bytes, of which 1000000 are read")
    );
}

#[tokio::test]
async fn no_more_are_handled_at_once_than_is_set_and_layers_compose() {
    let topology = topology();
    let publisher = publisher(&topology).await;
    let (now, most, done) = (
        Arc::new(AtomicUsize::new(0)),
        Arc::new(AtomicUsize::new(0)),
        Arc::new(AtomicUsize::new(0)),
    );
    let counting = {
        let (now, most, done) = (now.clone(), most.clone(), done.clone());
        service_fn(move |_: Delivery| {
            let (now, most, done) = (now.clone(), most.clone(), done.clone());
            async move {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(5)).await;
                now.fetch_sub(1, Ordering::SeqCst);
                done.fetch_add(1, Ordering::SeqCst);
                Ok::<(), BoxError>(())
            }
        })
    };
    let bulkhead = BulkheadPolicy::builder().limit(2).build().unwrap();
    let service = ServiceBuilder::new()
        .layer(BulkheadLayer::new(bulkhead, Plain::idempotent()))
        .service(counting);
    let running = Running::start(
        consumer(&topology).await.concurrency(3).build().unwrap(),
        service,
    );
    for _ in 0..40 {
        publish(&publisher, &topology, Message::new("")).await;
    }
    must(async {
        while done.load(Ordering::SeqCst) < 40 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    running.stop().await;
    assert_eq!(most.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_consumer_that_stops_finishes_what_it_began_and_gives_back_the_rest() {
    let topology = topology();
    let publisher = publisher(&topology).await;
    let (begun, done) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let slow = {
        let (begun, done) = (begun.clone(), done.clone());
        service_fn(move |_: Delivery| {
            let (begun, done) = (begun.clone(), done.clone());
            async move {
                begun.fetch_add(1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(500)).await;
                done.fetch_add(1, Ordering::SeqCst);
                Ok::<(), BoxError>(())
            }
        })
    };
    for _ in 0..10 {
        publish(&publisher, &topology, Message::new("")).await;
    }
    let running = Running::start(
        consumer(&topology).await.concurrency(2).build().unwrap(),
        slow,
    );
    until(|| begun.load(Ordering::SeqCst) == 2).await;
    assert!(running.status.is_ready());
    let status = running.status.clone();
    running.stop().await;
    assert!(!status.is_ready());
    assert_eq!(
        (begun.load(Ordering::SeqCst), done.load(Ordering::SeqCst)),
        (2, 2)
    );
    let (_connection, channel) = look().await;
    assert_eq!(depth(&channel, topology.queue()).await, 8);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_by_one_they_are_handled_in_order() {
    let (topology, seen) = (topology(), Seen::default());
    let publisher = publisher(&topology).await;
    for number in 0..200 {
        publish(
            &publisher,
            &topology,
            Message::new("").id(&number.to_string()),
        )
        .await;
    }
    let alone = consumer(&topology).await.prefetch(50).concurrency(1);
    let running = Running::start(alone.build().unwrap(), seeing(&seen));
    until(|| seen.len() == 200).await;
    running.stop().await;
    let handled = seen
        .all()
        .iter()
        .map(|delivery| delivery.message_id().unwrap().to_owned())
        .collect::<Vec<_>>();
    let published = (0..200).map(|number| number.to_string());
    assert_eq!(handled, published.collect::<Vec<_>>());
}

/// A bug where results are judged.
#[derive(Debug)]
struct Broken;

impl Classify<()> for Broken {
    fn head(&self, outcome: Result<&(), &BoxError>) -> Head {
        assert!(outcome.is_ok(), "a bug in the judgement");
        Head::last(Verdict::SUCCESS)
    }
}

#[tokio::test]
async fn a_panic_of_the_classifier_is_a_dead_letter_and_the_consumer_stays() {
    let (topology, seen) = (topology(), Seen::default());
    let publisher = publisher(&topology).await;
    let consumer = consumer(&topology).await.max_restarts(0).build().unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel();
    let running =
        tokio::spawn(consumer.run_with(seeing(&seen), Broken, async { drop(stopped.await) }));
    publish(&publisher, &topology, Message::new("fail")).await;
    publish(&publisher, &topology, Message::new("ok")).await;
    let (_connection, channel) = look().await;
    let (dead, _) = take(&channel, &topology.dead_letters()).await;
    until(|| seen.len() == 2).await;
    stop.send(()).unwrap();
    must(running).await.unwrap().unwrap();
    assert_eq!(header(&dead, headers::DEAD_REASON), Some("panic"));
    assert_eq!(
        header(&dead, headers::DEAD_DETAIL),
        Some("the handler panicked: a bug in the judgement")
    );
}
