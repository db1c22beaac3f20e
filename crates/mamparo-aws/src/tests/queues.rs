//! What SQS has of its own: nets, long polls, sizes, and messages that others have put there.

use std::time::Duration;

use aws_sdk_sqs::types::MessageAttributeValue;
use bytes::Bytes;
use futures_util::future::join_all;
use mamparo_durable::backend::{Depth, Message, Queue as _, QueueName, Request};
use mamparo_durable::limits::MAX_REQUEST_BYTES;
use mamparo_durable::machine::{Terms, Utc};
use mamparo_durable::policy::Policy;

use super::resources::{NET, fresh};
use super::support::{
    LONG, SHORT, answer, answers, behind_proxy, id, is_empty, names, now, take, take_one,
};
use crate::Aws;
use crate::queue::{self, SqsQueue};

async fn url(aws: &Aws, name: &str) -> String {
    let found = aws.sqs().get_queue_url().queue_name(name).send().await;
    found.unwrap().queue_url.unwrap()
}

async fn put(aws: &Aws, queue: &str, body: &str) {
    let sent = aws.sqs().send_message().queue_url(url(aws, queue).await);
    sent.message_body(body).send().await.unwrap();
}

#[tokio::test]
async fn the_largest_requests_travel_whole_however_many_at_once() {
    let (aws, strict) = behind_proxy().await;
    let queue = SqsQueue::new(&aws, QueueName::Requests);
    let body: Bytes = (0..MAX_REQUEST_BYTES).map(|n| (n % 251) as u8).collect();
    let request = |n: u32| {
        let terms = Terms::new(id(&format!("t{n}")), "payment", &Policy::default(), now());
        Message::Request(Request::new(&terms, 1, 0, body.clone()))
    };
    queue.publish((0..7).map(request).collect()).await.unwrap();
    let mut taken = take(&queue, 7, LONG).await;
    taken.sort_by_key(|delivery| delivery.message.id().to_string());
    assert!(
        taken
            .into_iter()
            .map(|it| it.message)
            .eq((0..7).map(request))
    );
    assert_eq!(strict.refused(), [""; 0]);
}

#[tokio::test]
async fn what_many_do_at_once_shares_requests() {
    let (aws, strict) = behind_proxy().await;
    let queue = SqsQueue::new(&aws, QueueName::Answers);
    let one = |message| queue.publish(vec![message]);
    let done = join_all(answers(200).into_iter().map(one)).await;
    assert!(done.into_iter().all(|it| it.is_ok()));
    let sends = strict.count("SendMessageBatch");
    assert!(sends <= 35, "{sends} requests for 200 messages");
    let taken = take(&queue, 200, LONG).await;
    let done = join_all(
        taken
            .iter()
            .map(|it| queue.acknowledge(vec![it.receipt.clone()])),
    )
    .await;
    assert!(done.into_iter().all(|it| it.is_ok()));
    let deletes = strict.count("DeleteMessageBatch");
    assert!(deletes <= 35, "{deletes} requests for 200 messages");
}

#[tokio::test]
async fn whoever_stops_waiting_loses_nothing_that_the_poll_finds() {
    let queue = SqsQueue::new(&fresh().await, QueueName::Answers);
    assert!(queue.take(1, LONG).await.unwrap().is_empty());
    let waited = tokio::time::timeout(Duration::from_millis(300), queue.ready()).await;
    assert!(waited.is_err());
    queue.publish(answers(12)).await.unwrap();
    let taken = take(&queue, 12, LONG).await;
    assert!(taken.iter().all(|delivery| delivery.number == 1));
    assert_eq!(names(&taken).len(), 12);
    assert!(is_empty(&queue).await);
}

#[tokio::test]
async fn what_a_poll_found_long_ago_is_left_to_be_delivered_again() {
    let queue = SqsQueue::new(&fresh().await, QueueName::Answers);
    assert!(queue.take(1, SHORT).await.unwrap().is_empty());
    queue.publish(answers(1)).await.unwrap();
    queue.ready().await;
    tokio::time::sleep(SHORT + Duration::from_millis(100)).await;
    let again = take_one(&queue, LONG).await;
    assert_eq!(again.number, 2);
    queue.acknowledge(vec![again.receipt]).await.unwrap();
    assert_eq!(queue.depth().await.unwrap(), Default::default());
}

#[tokio::test]
async fn what_a_poll_found_is_held_for_as_long_as_whoever_takes_it_asks() {
    let queue = SqsQueue::new(&fresh().await, QueueName::Answers);
    assert!(queue.take(1, SHORT).await.unwrap().is_empty());
    queue.publish(answers(1)).await.unwrap();
    queue.ready().await;
    let taken = take_one(&queue, LONG).await;
    tokio::time::sleep(SHORT + Duration::from_millis(100)).await;
    assert!(is_empty(&queue).await);
    queue.acknowledge(vec![taken.receipt]).await.unwrap();
    assert_eq!(queue.depth().await.unwrap(), Default::default());
}

/// It was handled: that its lease was over meanwhile is no reason to handle it again.
#[tokio::test]
async fn what_was_handled_for_longer_than_its_lease_is_removed_all_the_same() {
    let queue = SqsQueue::new(&fresh().await, QueueName::Answers);
    queue.publish(answers(1)).await.unwrap();
    let taken = take_one(&queue, SHORT).await;
    tokio::time::sleep(SHORT + Duration::from_millis(100)).await;
    queue.acknowledge(vec![taken.receipt]).await.unwrap();
    assert_eq!(queue.depth().await.unwrap(), Depth::default());
}

/// SQS holds it for a whole second.
#[tokio::test]
async fn a_lease_of_less_than_a_second_that_is_extended_is_held_for_as_long_as_sqs_holds_it() {
    let queue = SqsQueue::new(&fresh().await, QueueName::Answers);
    queue.publish(answers(1)).await.unwrap();
    let brief = Duration::from_millis(100);
    let taken = take_one(&queue, brief).await;
    let receipts = vec![taken.receipt.clone()];
    queue.extend(receipts, brief).await.unwrap();
    tokio::time::sleep(brief * 2).await;
    queue.bury(taken.receipt, "no".into()).await.unwrap();
    assert_eq!(queue.depth().await.unwrap().dead, 1);
}

/// At least once, never before its instant, whatever the service does.
#[tokio::test]
async fn a_fire_that_comes_early_waits_until_it_is_due_and_spends_no_delivery() {
    let aws = fresh().await;
    let queue = SqsQueue::new(&aws, QueueName::Fires);
    let due = now().plus(Duration::from_millis(1_200));
    let body = queue::fire(&id("t"), &super::support::schedule(2, due));
    put(&aws, &aws.names().queue(QueueName::Fires), &body).await;
    let delivery = take_one(&queue, LONG).await;
    assert!(now() >= due);
    assert_eq!((delivery.number, delivery.since), (1, due));
    assert!(is_empty(&queue).await);
}

#[tokio::test]
async fn what_can_not_be_read_is_buried_and_can_be_sent_back() {
    let aws = fresh().await;
    let queue = SqsQueue::new(&aws, QueueName::Answers);
    put(&aws, &aws.names().queue(QueueName::Answers), "nonsense").await;
    assert!(is_empty(&queue).await);
    let dead = queue.dead(None, 10).await.unwrap();
    assert_eq!(
        (dead.len(), &dead[0].message, dead[0].deliveries),
        (1, &None, 1)
    );
    assert!(
        dead[0].why.as_str().starts_with("message = "),
        "{:?}",
        dead[0].why
    );
    assert_eq!(queue.requeue(vec![dead[0].number]).await.unwrap(), 1);
    assert!(is_empty(&queue).await);
    let again = queue.dead(Some(dead[0].number), 10).await.unwrap();
    assert_eq!(again.len(), 1, "with a number of its own");
}

/// Row: whoever should have buried it never came so far. The net of SQS catches it.
#[tokio::test]
async fn what_the_redrive_policy_has_caught_is_among_the_dead_letters() {
    let aws = fresh().await;
    let queue = SqsQueue::new(&aws, QueueName::Answers);
    queue.publish(vec![answer("t")]).await.unwrap();
    let url = url(&aws, &aws.names().queue(QueueName::Answers)).await;
    for _ in 0..=NET {
        let taken = aws
            .sqs()
            .receive_message()
            .queue_url(&url)
            .visibility_timeout(0);
        drop(taken.send().await.unwrap());
    }
    assert_eq!(queue.depth().await.unwrap().dead, 1);
    let dead = queue.dead(None, 10).await.unwrap();
    assert_eq!(
        (dead[0].message.as_ref(), dead[0].deliveries),
        (Some(&answer("t")), NET)
    );
    assert!(dead[0].why.as_str().contains("redrive"));
    assert_eq!(queue.requeue(vec![dead[0].number]).await.unwrap(), 1);
    assert_eq!(
        take_one(&queue, LONG).await.number,
        1,
        "as if never delivered"
    );
}

/// Row: the scheduler can't deliver.
#[tokio::test]
async fn what_the_scheduler_could_not_deliver_is_among_the_dead_fires() {
    let aws = fresh().await;
    let queue = SqsQueue::new(&aws, QueueName::Fires);
    let body = queue::fire(&id("t"), &super::support::schedule(2, Utc::MIN));
    let why = MessageAttributeValue::builder().data_type("String");
    let why = why.string_value("Queue does not exist").build().unwrap();
    let sent = aws
        .sqs()
        .send_message()
        .queue_url(url(&aws, &aws.names().undelivered()).await);
    let sent = sent
        .message_body(body)
        .message_attributes("ERROR_MESSAGE", why);
    sent.send().await.unwrap();
    let dead = queue.dead(None, 10).await.unwrap();
    assert_eq!((dead.len(), dead[0].deliveries), (1, 0));
    assert!(dead[0].why.as_str().contains("Queue does not exist"));
    assert_eq!(queue.requeue(vec![dead[0].number]).await.unwrap(), 1);
    let fire = take_one(&queue, LONG).await.message;
    assert_eq!(
        fire,
        Message::Fire {
            id: id("t"),
            attempt: 2,
            seq: 0
        }
    );
}

#[tokio::test]
async fn what_was_discarded_is_noted_with_its_reason() {
    let aws = fresh().await;
    let queue = SqsQueue::new(&aws, QueueName::Answers);
    queue.publish(answers(1)).await.unwrap();
    let taken = take_one(&queue, LONG).await;
    queue.bury(taken.receipt, "no".into()).await.unwrap();
    let number = queue.dead(None, 1).await.unwrap()[0].number;
    assert_eq!(
        queue
            .discard(vec![number], "nobody needs it".into())
            .await
            .unwrap(),
        1
    );
    let scanned = aws
        .dynamo()
        .scan()
        .table_name(aws.names().letters())
        .send()
        .await
        .unwrap();
    let items = scanned.items.unwrap();
    let noted = items
        .iter()
        .find(|item| item.get("queue").unwrap().as_s().unwrap() == "answers/discarded");
    assert_eq!(noted.unwrap()["reason"].as_s().unwrap(), "nobody needs it");
    assert_eq!(noted.unwrap()["why"].as_s().unwrap(), "no");
}
