//! What the services refuse, forget and do by halves, by way of a proxy before the local server.

use std::time::Duration;

use mamparo_durable::backend::{
    BackendError, Created, Queue as _, QueueName, Scheduler as _, Trouble,
};
use mamparo_durable::machine::Utc;

use super::resources::settings;
use super::strict::{Act, Strict};
use super::support::{
    LONG, SHORT, Wrong, answer, answers, behind_proxy, behind_proxy_with, id, is_empty, names, now,
    schedule, take, take_one,
};
use crate::Aws;
use crate::queue::SqsQueue;
use crate::scheduler::{EventBridge, count};

const HOUR: Duration = Duration::from_secs(3_600);

fn parts(aws: &Aws) -> (EventBridge, SqsQueue) {
    let fires = SqsQueue::new(aws, QueueName::Fires);
    (EventBridge::new(aws, &fires), fires)
}

async fn create(
    scheduler: &EventBridge,
    name: &str,
    fire_at: Utc,
) -> Result<Created, BackendError> {
    let mut created = scheduler
        .create(vec![(id(name), schedule(2, fire_at))])
        .await;
    created.remove(0)
}

/// Row: A dies after the schedule; here the answer to it is lost. It is there once, and that is success.
#[tokio::test]
async fn a_schedule_whose_answer_is_lost_is_there_once() {
    let (aws, strict) = behind_proxy().await;
    let (scheduler, _) = parts(&aws);
    strict.next("CreateSchedule", 1, Act::DoneUnheard);
    let created = create(&scheduler, "t", now().plus(HOUR)).await.unwrap();
    assert!(
        matches!(created, Created::New | Created::Same),
        "{created:?}"
    );
    assert_eq!(count(&aws).await.unwrap(), 1);
    assert_eq!(strict.refused(), [""; 0]);
}

#[tokio::test]
async fn a_schedule_that_is_just_being_made_or_deleted_is_asked_for_again() {
    let (aws, strict) = behind_proxy().await;
    let (scheduler, _) = parts(&aws);
    let busy = Act::Refuse(
        409,
        "ConflictException",
        "Schedule retry-t-2 is being deleted",
    );
    strict.next("CreateSchedule", 2, busy.clone());
    assert_eq!(
        create(&scheduler, "t", now().plus(HOUR)).await.unwrap(),
        Created::New
    );
    assert_eq!(strict.count("CreateSchedule"), 3);
    strict.next("CreateSchedule", 1_000, busy);
    let error = create(&scheduler, "u", now().plus(HOUR)).await.unwrap_err();
    assert!(
        error.is_transient() && error.to_string().contains("retry-u-2"),
        "{error}"
    );
}

#[tokio::test]
async fn throttling_and_5xx_are_borne_for_a_while_and_told_after_that() {
    let (aws, strict) = behind_proxy().await;
    let (scheduler, _) = parts(&aws);
    let due = now().plus(HOUR);
    for (name, act) in [("throttled", Act::THROTTLED), ("broken", Act::BROKEN)] {
        strict.next("CreateSchedule", 1, act);
        assert_eq!(create(&scheduler, name, due).await.unwrap(), Created::New);
    }
    strict.next("CreateSchedule", 3, Act::THROTTLED);
    let error = create(&scheduler, "told", due).await.unwrap_err();
    assert_eq!(error.trouble(), Trouble::Unavailable, "{error}");
    assert!(!error.to_string().contains('\n'));
}

/// A name of any id, an instant of any year: nothing that the service would refuse.
#[tokio::test]
async fn whatever_the_id_the_service_takes_it() {
    let (aws, strict) = behind_proxy().await;
    let (scheduler, _) = parts(&aws);
    let long = "x".repeat(256);
    let ids = [
        "a",
        "t'ñ😀 \u{ffff}",
        "with/slash",
        "..",
        "a-2",
        "UPPER_lower.9",
        long.as_str(),
    ];
    for id in ids {
        assert_eq!(
            create(&scheduler, id, now().plus(HOUR)).await.unwrap(),
            Created::New,
            "{id}"
        );
        assert_eq!(
            create(&scheduler, id, now().plus(HOUR * 2)).await.unwrap(),
            Created::Conflict
        );
    }
    assert_eq!(
        create(&scheduler, "far", Utc::MAX).await.unwrap(),
        Created::New
    );
    assert_eq!(
        create(&scheduler, "far", Utc::MAX).await.unwrap(),
        Created::Same
    );
    assert_eq!(strict.refused(), [""; 0]);
    assert_eq!(count(&aws).await.unwrap(), ids.len() as u64 + 1);
}

/// Bad input: a clock that is an hour behind.
#[tokio::test]
async fn an_instant_that_only_the_service_calls_past_goes_to_the_queue() {
    let (aws, strict) = behind_proxy_with(|settings| settings.wall_clock(Wrong(-3_600))).await;
    let (scheduler, fires) = parts(&aws);
    let due = now().minus(Duration::from_secs(1_800));
    assert_eq!(create(&scheduler, "t", due).await.unwrap(), Created::New);
    assert_eq!(strict.refused().len(), 1);
    assert_eq!(fires.depth().await.unwrap().later, 1);
}

/// Bad input: the group is deleted under us.
#[tokio::test]
async fn a_group_that_is_gone_is_told_in_one_line() {
    let (aws, strict) = behind_proxy().await;
    let (scheduler, _) = parts(&aws);
    let gone = Act::Refuse(
        404,
        "ResourceNotFoundException",
        "Schedule group test does not exist.",
    );
    strict.next("CreateSchedule", 1, gone);
    let error = create(&scheduler, "t", now().plus(HOUR)).await.unwrap_err();
    assert_eq!(error.trouble(), Trouble::Incompatible);
    let line = error.to_string();
    assert!(
        line.contains("schedule group test-") && line.contains("mamparo aws apply"),
        "{line}"
    );
    let group = aws.names().schedule_group();
    aws.scheduler()
        .delete_schedule_group()
        .name(group)
        .send()
        .await
        .unwrap();
    let error = create(&scheduler, "t", now()).await.unwrap_err();
    assert!(error.to_string().contains("mamparo aws apply"), "{error}");
    scheduler.delete(id("t"), 2, 0).await.unwrap();
}

#[tokio::test]
async fn of_a_batch_that_is_done_in_part_the_rest_is_done_alone() {
    let (aws, strict) = behind_proxy().await;
    let queue = SqsQueue::new(&aws, QueueName::Answers);
    strict.next("SendMessageBatch", 1, Act::InPart);
    queue.publish(answers(10)).await.unwrap();
    assert_eq!(strict.count("SendMessageBatch"), 6);
    let taken = take(&queue, 10, SHORT).await;
    assert_eq!(
        names(&taken),
        (0..10).map(|n| format!("t{n}")).collect::<Vec<_>>()
    );
    let receipts: Vec<_> = taken.iter().map(|it| it.receipt.clone()).collect();
    strict.next("ChangeMessageVisibilityBatch", 1, Act::InPart);
    queue.extend(receipts.clone(), LONG).await.unwrap();
    tokio::time::sleep(SHORT + Duration::from_millis(200)).await;
    assert!(is_empty(&queue).await, "all ten are held");
    strict.next("DeleteMessageBatch", 1, Act::InPart);
    queue.acknowledge(receipts).await.unwrap();
    assert_eq!(queue.depth().await.unwrap(), Default::default());
}

#[tokio::test]
async fn what_is_published_unheard_is_there_at_least_once() {
    let (aws, strict) = behind_proxy().await;
    let queue = SqsQueue::new(&aws, QueueName::Answers);
    strict.next("SendMessageBatch", 1, Act::DoneUnheard);
    queue.publish(vec![answer("unheard")]).await.unwrap();
    strict.next("SendMessageBatch", 1, Act::Twice);
    queue.publish(vec![answer("twice")]).await.unwrap();
    let taken = take(&queue, 4, LONG).await;
    assert_eq!(names(&taken), ["twice", "twice", "unheard", "unheard"]);
}

#[tokio::test]
async fn what_is_taken_unheard_comes_again_after_its_lease() {
    let (aws, strict) = behind_proxy().await;
    let queue = SqsQueue::new(&aws, QueueName::Answers);
    queue.publish(answers(1)).await.unwrap();
    strict.next("ReceiveMessage", 1, Act::DoneUnheard);
    assert_eq!(take_one(&queue, SHORT).await.number, 2);
}

#[tokio::test]
async fn what_could_not_be_acknowledged_can_be_again_or_comes_again() {
    let (aws, strict) = behind_proxy().await;
    let queue = SqsQueue::new(&aws, QueueName::Answers);
    queue.publish(answers(2)).await.unwrap();
    let taken = take(&queue, 2, Duration::from_secs(3)).await;
    strict.next("DeleteMessageBatch", 3, Act::BROKEN);
    let receipts = vec![taken[0].receipt.clone()];
    let error = queue.acknowledge(receipts.clone()).await.unwrap_err();
    assert!(error.is_transient(), "{error}");
    queue.acknowledge(receipts).await.unwrap();
    let again = take_one(&queue, LONG).await;
    assert_eq!((again.number, &again.message), (2, &taken[1].message));
    assert!(is_empty(&queue).await);
}

/// A letter that could not be stored stays in the queue; one whose message could not be deleted may be there twice, and never not at all.
#[tokio::test]
async fn what_could_not_be_buried_comes_again() {
    let (aws, strict) = behind_proxy().await;
    let queue = SqsQueue::new(&aws, QueueName::Answers);
    queue.publish(answers(1)).await.unwrap();
    for operation in ["PutItem", "DeleteMessageBatch"] {
        let delivery = take_one(&queue, SHORT).await;
        strict.next(operation, 3, Act::BROKEN);
        let error = queue.bury(delivery.receipt, "no".into()).await.unwrap_err();
        assert!(error.is_transient(), "{error}");
    }
    let delivery = take_one(&queue, LONG).await;
    queue.bury(delivery.receipt, "no".into()).await.unwrap();
    assert!(is_empty(&queue).await);
    assert_eq!(queue.dead(None, 10).await.unwrap().len(), 2);
}

/// Bad input: each is one line that says what to do.
#[tokio::test]
async fn what_an_operator_must_mend_is_told_in_one_line() {
    let (aws, strict) = behind_proxy().await;
    let queue = SqsQueue::new(&aws, QueueName::Answers);
    queue.publish(answers(1)).await.unwrap();
    for (status, code, words, says) in [
        (
            403,
            "ExpiredToken",
            "The security token included in the request is expired",
            "expired token",
        ),
        (403, "RequestExpired", "Request has expired.", "clock"),
        (
            403,
            "SignatureDoesNotMatch",
            "Signature expired: 20300101T000000Z is now earlier",
            "clock",
        ),
        (
            403,
            "InvalidClientTokenId",
            "The security token included in the request is invalid.",
            "credentials",
        ),
        (
            403,
            "AccessDeniedException",
            "User is not authorized",
            "mamparo aws plan",
        ),
        (
            400,
            "AWS.SimpleQueueService.NonExistentQueue",
            "The specified queue does not exist.",
            "mamparo aws apply",
        ),
    ] {
        strict.next("ReceiveMessage", 1, Act::Refuse(status, code, words));
        let error = queue.take(1, LONG).await.unwrap_err().to_string();
        assert!(
            error.starts_with("SQS ") && error.contains(says) && !error.contains('\n'),
            "{code}: {error}"
        );
    }
    assert_eq!(take(&queue, 1, LONG).await.len(), 1, "nothing is lost");
}

/// Bad input: nothing was made for this prefix, or in this region.
#[tokio::test]
async fn a_queue_that_is_not_there_is_told_and_found_once_it_is() {
    let url = mamparo_testkit::private::PrivateMoto::shared().await.url();
    let aws = Aws::connect(settings(&url).build().unwrap()).await.unwrap();
    let queue = SqsQueue::new(&aws, QueueName::Answers);
    let error = queue.publish(answers(1)).await.unwrap_err();
    assert_eq!(error.trouble(), Trouble::Incompatible);
    let line = error.to_string();
    assert!(
        line.contains(&aws.names().queue(QueueName::Answers)),
        "{line}"
    );
    assert!(
        line.contains("region") && line.contains("mamparo aws apply"),
        "{line}"
    );
    super::resources::make(&aws).await;
    queue.publish(answers(1)).await.unwrap();
    assert_eq!(take(&queue, 1, LONG).await.len(), 1);
}

/// Nobody answers at all.
#[tokio::test]
async fn a_service_that_is_away_is_told_in_time() {
    let strict = Strict::before("127.0.0.1:1".parse().unwrap()).await;
    let settings = settings(&strict.url())
        .timeout(SHORT)
        .attempt_timeout(SHORT);
    let aws = Aws::connect(settings.build().unwrap()).await.unwrap();
    let queue = SqsQueue::new(&aws, QueueName::Answers);
    let error = queue.take(1, LONG).await.unwrap_err();
    assert!(error.is_transient(), "{error}");
}
