use std::time::Duration;

use super::support::{depth, look, publisher, queue, settings, topology};
use crate::{Publisher, Topology, Trouble};

#[tokio::test]
async fn queues_are_declared_as_often_as_one_likes() {
    let topology = topology();
    let publisher = publisher(&topology).await;
    publisher.declare(&topology).await.unwrap();
    let (_connection, channel) = look().await;
    for suffix in ["", ".retry", ".dlq"] {
        assert_eq!(
            depth(&channel, &format!("{}{suffix}", topology.queue())).await,
            0
        );
    }
}

#[tokio::test]
async fn queues_that_exist_otherwise_are_named_with_what_differs() {
    let name = queue();
    let seconds = |delay, limit| {
        let builder = Topology::builder(&name).delay(Duration::from_secs(delay));
        builder.delivery_limit(limit).build().unwrap()
    };
    let publisher = publisher(&seconds(30, 20)).await;
    let error = publisher.declare(&seconds(60, 7)).await.unwrap_err();
    assert_eq!(error.trouble(), Trouble::Mismatch);
    let said = error.to_string();
    let both = [
        format!("declaring the queue {name}: PRECONDITION_FAILED - inequivalent arg 'x-delivery-limit'"),
        format!("declaring the queue {name}.retry: PRECONDITION_FAILED - inequivalent arg 'x-message-ttl'"),
        "received '60000' but current is '30000' (it exists otherwise: declare it as it is, or empty and delete it first)".to_owned(),
    ];
    for part in both {
        assert!(said.contains(&part), "{part}\n{said}");
    }
    assert!(!said.contains('\n'));
}

#[tokio::test]
async fn an_exchange_that_does_not_exist_is_named() {
    let topology = Topology::builder(queue())
        .bind("events_of_nobody", "order.*")
        .build()
        .unwrap();
    let error = Publisher::new(settings().await)
        .declare(&topology)
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("no exchange 'events_of_nobody'"),
        "{error}"
    );
}

#[test]
fn delays_past_the_last_are_the_last_and_a_hint_takes_the_first_that_is_long_enough() {
    let delays = [1, 60, 5_400].map(Duration::from_secs);
    let topology = Topology::builder("q").delays(delays).build().unwrap();
    let names: Vec<String> = topology.retries().map(|(name, _)| name).collect();
    assert_eq!(names, ["q.retry.1s", "q.retry.1m", "q.retry.90m"]);
    assert_eq!(topology.retry(0).1, delays[0]);
    assert_eq!(topology.retry(u32::MAX).1, delays[2]);
    assert_eq!(topology.retry_after(1, Duration::from_secs(2)).1, delays[1]);
    assert_eq!(topology.retry_after(3, Duration::from_secs(2)).1, delays[2]);
    assert_eq!(
        topology.retry_after(1, Duration::from_secs(86_400)).1,
        delays[2]
    );
}

#[test]
fn what_rabbitmq_would_refuse_is_refused_before() {
    let build = |name: &str| Topology::builder(name).build();
    assert!(build("q").is_ok());
    for name in ["", "amq.mine", &"q".repeat(201)] {
        assert_eq!(build(name).unwrap_err().setting(), "queue");
    }
    let delays = |delays: &[u64]| {
        let delays = delays.iter().map(|&delay| Duration::from_micros(delay));
        Topology::builder("q")
            .delays(delays)
            .build()
            .map_err(|error| error.setting().to_owned())
    };
    assert!(delays(&[1_000, 2_000]).is_ok());
    assert_eq!(delays(&[2_000, 1_000]), Err("delays".to_owned()));
    assert_eq!(delays(&[1_500]), Err("delay".to_owned()));
    assert_eq!(delays(&[0]), Err("delay".to_owned()));
}
