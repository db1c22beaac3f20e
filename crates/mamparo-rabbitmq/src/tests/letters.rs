use std::future::{pending, ready};
use std::sync::Mutex;
use std::time::Duration;

use lapin::BasicProperties;
use lapin::options::BasicPublishOptions;
use lapin::types::AMQPValue;

use super::support::{
    Running, Seen, consumer, depth, look, must, publisher, queue, settings, take, text, topology,
    until, with_headers,
};
use crate::message::header;
use crate::{
    DeadLetters, Depths, Letter, Message, Publisher, RabbitError, Selection, Topology, Trouble,
    headers,
};

/// Dead letters with these ids.
async fn dead(ids: &[&'static str]) -> (Topology, DeadLetters, Publisher) {
    let topology = topology();
    let publisher = publisher(&topology).await;
    for id in ids {
        let headers = with_headers([
            (headers::ATTEMPTS, AMQPValue::LongUInt(5)),
            (headers::DEAD_REASON, text("exhausted")),
        ]);
        let message = Message::with_properties(*id, headers)
            .id(id)
            .header("traceparent", "00-1-2-01");
        publisher
            .publish("", &topology.dead_letters(), message)
            .await
            .unwrap();
    }
    let letters = DeadLetters::in_topology(settings().await, topology.clone());
    (topology, letters, publisher)
}

fn every(max: usize) -> Selection<'static> {
    Selection::first(max)
}

fn ids(letters: Result<Vec<Letter>, RabbitError>) -> Vec<String> {
    letters
        .unwrap()
        .iter()
        .map(|letter| letter.message_id().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn looking_at_dead_letters_changes_nothing_however_often() {
    let (_, letters, _) = dead(&["a", "b", "c", "d"]).await;
    for _ in 0..30 {
        assert_eq!(ids(letters.list(every(9)).await), ["a", "b", "c", "d"]);
        assert_eq!(ids(letters.list(every(2)).await), ["a", "b"]);
    }
    let odd = Selection {
        wanted: &|letter| letter.number() % 2 == 0,
        ..every(9)
    };
    let found = letters.list(odd).await.unwrap();
    assert_eq!(
        (found.len(), found[0].reason(), found[0].attempts()),
        (2, "exhausted", 5)
    );
    assert_eq!(
        letters.depths().await.unwrap(),
        Depths {
            ready: 0,
            retry: 0,
            dead: 4
        }
    );
}

#[tokio::test]
async fn what_is_put_back_starts_anew_and_what_the_filter_leaves_stays_in_order() {
    let (topology, letters, _) = dead(&["a", "b", "c", "d", "e"]).await;
    let wanted = |letter: &Letter| matches!(letter.message_id(), Some("b" | "d" | "e"));
    let selection = Selection {
        wanted: &wanted,
        pause: Duration::from_millis(1),
        ..every(2)
    };
    assert_eq!(ids(letters.requeue(selection, pending()).await), ["b", "d"]);
    assert_eq!(ids(letters.list(every(9)).await), ["a", "c", "e"]);
    let (_connection, channel) = look().await;
    for id in ["b", "d"] {
        let (properties, body) = take(&channel, topology.queue()).await;
        assert_eq!(body, id.as_bytes());
        assert_eq!(header(&properties, "traceparent"), Some("00-1-2-01"));
        let headers = properties.headers().as_ref().unwrap();
        assert!(headers.contains_key(headers::REPROCESSED));
        assert!(
            !headers.contains_key(headers::ATTEMPTS) && !headers.contains_key(headers::DEAD_REASON)
        );
    }
}

#[tokio::test]
async fn interrupted_half_way_it_loses_and_doubles_nothing() {
    let (topology, letters, _) = dead(&["a", "b", "c", "d"]).await;
    let (_connection, channel) = look().await;
    let queue = topology.queue();
    // Stopped while it rests after the second.
    let stop = async {
        while depth(&channel, queue).await < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let told = Mutex::new(Vec::new());
    let selection = Selection {
        pause: Duration::from_millis(100),
        done: &|letter| told.lock().unwrap().push(letter.body().clone()),
        ..every(9)
    };
    let done = ids(letters.requeue(selection, stop).await);
    assert_eq!(done, ["a", "b"]);
    assert_eq!(told.into_inner().unwrap(), ["a", "b"]);
    assert_eq!(ids(letters.list(every(9)).await), ["c", "d"]);
    assert_eq!(depth(&channel, queue).await, 2);
    assert!(ids(letters.requeue(every(9), ready(())).await).is_empty());
}

#[tokio::test]
async fn a_long_pause_ends_when_it_is_told_to_stop() {
    let (topology, letters, _) = dead(&["a", "b"]).await;
    let (_connection, channel) = look().await;
    let stop = async { while depth(&channel, topology.queue()).await < 1 {} };
    let selection = Selection {
        pause: Duration::from_secs(3_600),
        ..every(9)
    };
    let done = must(letters.requeue(selection, stop)).await;
    assert_eq!(ids(done), ["a"]);
}

/// Two letters, of which the second has nowhere to go: its queue is deleted meanwhile.
#[tokio::test]
async fn what_was_done_before_it_went_wrong_is_told() {
    let (topology, letters, _) = dead(&["a", "b"]).await;
    let (_connection, channel) = look().await;
    let told = Mutex::new(Vec::new());
    let selection = Selection {
        pause: Duration::from_secs(1),
        done: &|letter| told.lock().unwrap().push(letter.body().clone()),
        ..every(9)
    };
    let spoil = async {
        while told.lock().unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let options = lapin::options::QueueDeleteOptions::default();
        channel
            .queue_delete(topology.queue().into(), options)
            .await
            .unwrap();
    };
    let (done, ()) = tokio::join!(letters.requeue(selection, pending()), spoil);
    assert_eq!(done.unwrap_err().trouble(), Trouble::Unroutable);
    assert_eq!(*told.lock().unwrap(), ["a"]);
}

#[tokio::test]
async fn what_is_discarded_is_gone_and_the_rest_stays() {
    let (topology, letters, _) = dead(&["a", "b", "c"]).await;
    let selection = Selection {
        wanted: &|letter| letter.message_id() != Some("b"),
        ..every(9)
    };
    assert_eq!(ids(letters.discard(selection, pending()).await), ["a", "c"]);
    assert_eq!(ids(letters.list(every(9)).await), ["b"]);
    let (_connection, channel) = look().await;
    assert_eq!(depth(&channel, topology.queue()).await, 0);
}

#[tokio::test]
async fn a_queue_that_is_not_there_is_told() {
    let letters = DeadLetters::of(settings().await, "nobody").unwrap();
    let error = letters.list(every(1)).await.unwrap_err();
    assert_eq!(
        (error.trouble(), error.to_string()),
        (
            Trouble::Unroutable,
            "there is no queue nobody.dlq".to_owned()
        )
    );
    assert_eq!(letters.depths().await.unwrap(), Depths::default());
}

#[tokio::test]
async fn dead_letters_with_nowhere_to_go_stay() {
    let name = queue();
    let (_connection, channel) = look().await;
    let dead = format!("{name}.dlq");
    let options = lapin::options::QueueDeclareOptions::durable();
    channel
        .queue_declare(
            dead.as_str().into(),
            options,
            lapin::types::FieldTable::default(),
        )
        .await
        .unwrap();
    let sent = channel
        .basic_publish(
            "".into(),
            dead.as_str().into(),
            BasicPublishOptions::default(),
            b"x",
            BasicProperties::default(),
        )
        .await;
    drop(sent);
    let letters = DeadLetters::of(settings().await, &name).unwrap();
    must(async { while letters.depths().await.unwrap().dead == 0 {} }).await;
    let error = letters.requeue(every(9), pending()).await.unwrap_err();
    assert_eq!(error.trouble(), Trouble::Unroutable);
    assert_eq!(letters.depths().await.unwrap().dead, 1);
    assert_eq!(letters.list(every(9)).await.unwrap()[0].reason(), "unknown");
}

/// Deliveries without end, and then the limit: a message that kills its consumers.
#[tokio::test]
async fn a_message_that_nobody_ever_settles_is_a_dead_letter_by_the_delivery_limit_and_can_be_put_back()
 {
    let topology = Topology::builder(queue())
        .delay(super::support::SOON)
        .delivery_limit(2)
        .owner("team payments")
        .runbook("https://wiki/killers")
        .build()
        .unwrap();
    let publisher = publisher(&topology).await;
    // It has waited for another attempt before, which is not what it died of.
    let retry = topology.retry(1).0;
    let message = Message::new("killer").id("k");
    publisher.publish("", &retry, message).await.unwrap();
    let letters = DeadLetters::in_topology(settings().await, topology.clone());
    for _ in 0..3 {
        let (connection, channel) = look().await;
        hold(&channel, topology.queue()).await;
        connection.close(200, "".into()).await.unwrap();
    }
    must(async { while letters.depths().await.unwrap().dead == 0 {} }).await;
    let killer = &letters.list(every(1)).await.unwrap()[0];
    let said = [killer.reason(), killer.owner(), killer.runbook()];
    assert_eq!(
        said,
        ["delivery_limit", "team payments", "https://wiki/killers"]
    );
    // Put back, it is tried again and again: RabbitMQ does not take it for one that goes in circles.
    letters.requeue(every(1), pending()).await.unwrap();
    let seen = Seen::default();
    let failing = seen.then(|_| async { Err("not yet".into()) });
    let running = Running::start(
        consumer(&topology).await.max_attempts(3).build().unwrap(),
        failing,
    );
    until(|| seen.len() == 3).await;
    running.stop().await;
    assert_eq!(ids(letters.list(every(9)).await), ["k"]);
}

/// Takes one, and does not settle it.
async fn hold(channel: &lapin::Channel, queue: &str) {
    let taken = async {
        let options = lapin::options::BasicGetOptions::default();
        while channel
            .basic_get(queue.into(), options)
            .await
            .unwrap()
            .is_none()
        {}
    };
    must(taken).await;
}
