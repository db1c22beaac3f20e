//! What a [`Queue`] promises.

use std::collections::BTreeSet;
use std::time::Duration;

use super::support::{
    LONG, REDELIVERY_LIMIT, SHORT, begin, id, is_empty, must, now, pass, put, queue, record, take,
    take_one, waiting,
};
use crate::backend::{Backend, Delivery, Depth, Message, Queue, QueueName, Request};
use crate::machine::{Answer, Outcome, State, Terms, Utc};

/// Answers about different transactions; nobody looks whether those exist.
fn answers(count: usize) -> Vec<Message> {
    let answer = |n| Message::Answer {
        id: id(&format!("t{n}")),
        answer: Answer::new(1, 0, Outcome::Success),
    };
    (0..count).map(answer).collect()
}

async fn with_answers(backend: &Backend, count: usize) -> &dyn Queue {
    let queue = &**queue(backend, QueueName::Answers);
    queue.publish(answers(count)).await.unwrap();
    queue
}

async fn settle(queue: &dyn Queue, delivery: &Delivery) {
    queue
        .acknowledge(vec![delivery.receipt.clone()])
        .await
        .unwrap();
}

/// Every kind of message comes back as it was published.
pub async fn a_message_comes_back_whole(backend: Backend) {
    let terms = Terms {
        dependency: Some("psp".into()),
        trace: Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into()),
        ..(*record("t'ñ😀").terms).clone()
    };
    let at = crate::machine::Record::in_flight(terms);
    begin(&backend, &at).await;
    let id = at.terms.id.clone();
    let whole = Answer::new(u32::MAX, u32::MAX, Outcome::Technical)
        .with_reason("it's \"50%\" \\ ñ\n")
        .not_before(Utc::MAX);
    for message in [
        Message::Answer {
            id: id.clone(),
            answer: whole,
        },
        Message::Answer {
            id: id.clone(),
            answer: Answer::new(1, 0, Outcome::Declined),
        },
        Message::Fire {
            id,
            attempt: 7,
            seq: 3,
        },
        Message::Request(Request::new(&at.terms, 2, 1, (&b"the request"[..]).into())),
    ] {
        let queue = &**queue(&backend, message.queue());
        let before = now();
        queue.publish(vec![message.clone()]).await.unwrap();
        let delivery = take_one(queue, LONG).await;
        assert_eq!(delivery.message, message);
        assert!(delivery.number == 1 && delivery.since.plus(Duration::from_secs(1)) >= before);
        settle(queue, &delivery).await;
        assert!(is_empty(queue).await);
    }
}

/// A message is taken by one, whoever competes for it.
pub async fn a_message_is_taken_by_one(backend: Backend) {
    with_answers(&backend, 200).await;
    let takers: Vec<_> = (0..4)
        .map(|_| {
            let queue = queue(&backend, QueueName::Answers).clone();
            tokio::spawn(async move {
                let mut mine = Vec::new();
                loop {
                    let taken = queue.take(7, LONG).await.unwrap();
                    assert!(taken.len() <= 7);
                    if taken.is_empty() {
                        return mine;
                    }
                    mine.extend(
                        taken
                            .into_iter()
                            .map(|delivery| delivery.message.id().to_string()),
                    );
                }
            })
        })
        .collect();
    let mut all = Vec::new();
    for taker in takers {
        all.extend(must(taker).await.unwrap());
    }
    let once: BTreeSet<_> = all.iter().collect();
    assert_eq!((all.len(), once.len()), (200, 200));
}

/// What is acknowledged does not come again; acknowledged twice, it is as if once.
pub async fn what_is_acknowledged_does_not_come_again(backend: Backend) {
    let queue = with_answers(&backend, 3).await;
    let taken = take(queue, 3, SHORT).await;
    settle(queue, &taken[0]).await;
    settle(queue, &taken[0]).await;
    settle(queue, &taken[1]).await;
    pass(SHORT).await;
    let again = take_one(queue, LONG).await;
    assert_eq!((again.message, again.number), (taken[2].message.clone(), 2));
    assert!(is_empty(queue).await);
}

/// When a lease is over, another gets the message, and whoever had it can do nothing to it any more.
pub async fn whoever_lost_the_lease_changes_nothing(backend: Backend) {
    let queue = with_answers(&backend, 1).await;
    let stale = take_one(queue, SHORT).await.receipt;
    pass(SHORT).await;
    let current = take_one(queue, SHORT).await;
    queue.acknowledge(vec![stale.clone()]).await.unwrap();
    queue
        .release(stale.clone(), Duration::ZERO, true)
        .await
        .unwrap();
    queue.bury(stale.clone(), "stale".into()).await.unwrap();
    queue.extend(vec![stale], LONG).await.unwrap();
    assert!(is_empty(queue).await, "it was released");
    assert_eq!(queue.depth().await.unwrap().dead, 0);
    pass(SHORT).await;
    let next = take_one(queue, LONG).await;
    assert_eq!((next.number, next.message), (3, current.message));
}

/// A lease that is extended is held for longer.
pub async fn a_lease_that_is_extended_is_held(backend: Backend) {
    let queue = with_answers(&backend, 1).await;
    let delivery = take_one(queue, SHORT).await;
    queue
        .extend(vec![delivery.receipt.clone()], LONG)
        .await
        .unwrap();
    pass(SHORT + SHORT / 2).await;
    assert!(is_empty(queue).await);
    settle(queue, &delivery).await;
    assert_eq!(queue.depth().await.unwrap(), Depth::default());
}

/// What is released comes again after its delay, and counts as a delivery only if it is said so.
pub async fn what_is_released_comes_again_after_its_delay(backend: Backend) {
    let queue = with_answers(&backend, 1).await;
    let first = take_one(queue, LONG).await;
    queue.release(first.receipt, SHORT, false).await.unwrap();
    assert!(is_empty(queue).await, "the delay is not over");
    let second = take_one(queue, LONG).await;
    assert_eq!(second.number, 1, "a shutdown spends no delivery");
    queue
        .release(second.receipt, Duration::ZERO, true)
        .await
        .unwrap();
    assert_eq!(take_one(queue, LONG).await.number, 2);
}

/// What was delivered as often as is allowed is buried, and kept.
pub async fn what_comes_back_too_often_is_buried(backend: Backend) {
    let queue = with_answers(&backend, 1).await;
    for number in 1..=REDELIVERY_LIMIT {
        let delivery = take_one(queue, LONG).await;
        assert_eq!(delivery.number, number);
        queue
            .release(delivery.receipt, Duration::ZERO, true)
            .await
            .unwrap();
    }
    assert!(is_empty(queue).await);
    let dead = queue.dead(None, 10).await.unwrap();
    assert_eq!(dead.len(), 1);
    assert_eq!(
        (dead[0].message.as_ref(), dead[0].deliveries),
        (answers(1).first(), REDELIVERY_LIMIT)
    );
    assert_eq!(
        queue.depth().await.unwrap(),
        Depth {
            dead: 1,
            ..Depth::default()
        }
    );
}

/// Dead letters are kept with their reason, until they are put back or discarded.
pub async fn a_dead_letter_is_kept_until_it_is_put_back_or_discarded(backend: Backend) {
    let queue = with_answers(&backend, 3).await;
    for delivery in take(queue, 3, LONG).await {
        let why = format!("because of {}", delivery.message.id());
        queue
            .bury(delivery.receipt.clone(), why.as_str().into())
            .await
            .unwrap();
        queue.bury(delivery.receipt, "again".into()).await.unwrap();
    }
    assert!(is_empty(queue).await);
    let dead = queue.dead(None, 10).await.unwrap();
    assert_eq!(dead.len(), 3);
    assert!(dead.is_sorted_by_key(|letter| letter.number));
    let because = dead[0]
        .message
        .as_ref()
        .map(|message| format!("because of {}", message.id()));
    assert_eq!(because.as_deref(), Some(dead[0].why.as_str()));
    let after: Vec<u64> = queue
        .dead(Some(dead[0].number), 1)
        .await
        .unwrap()
        .iter()
        .map(|it| it.number)
        .collect();
    assert_eq!(after, [dead[1].number]);
    let two = vec![dead[0].number, dead[1].number];
    assert_eq!(
        (
            queue.requeue(two.clone()).await.unwrap(),
            queue.requeue(two).await.unwrap()
        ),
        (2, 0)
    );
    let back = take(queue, 2, LONG).await;
    assert!(
        back.iter().all(|delivery| delivery.number == 1),
        "as if never delivered"
    );
    let last = vec![dead[2].number];
    assert_eq!(
        queue
            .discard(last.clone(), "nobody needs it".into())
            .await
            .unwrap(),
        1
    );
    assert_eq!(
        queue.discard(last, "nobody needs it".into()).await.unwrap(),
        0
    );
    assert_eq!(
        queue.depth().await.unwrap(),
        Depth {
            taken: 2,
            ..Depth::default()
        }
    );
}

/// A dead letter of each queue is put back into its own.
pub async fn a_dead_letter_goes_back_into_its_own_queue(backend: Backend) {
    let at = put(&backend, "t", |record| {
        waiting(record, State::Scheduled, now())
    })
    .await;
    let id = at.terms.id.clone();
    for message in [
        Message::Fire {
            id: id.clone(),
            attempt: 2,
            seq: 0,
        },
        Message::Request(Request::new(&at.terms, 1, 0, (&b"the request"[..]).into())),
    ] {
        let queue = &**queue(&backend, message.queue());
        queue.publish(vec![message.clone()]).await.unwrap();
        let delivery = take_one(queue, LONG).await;
        queue.bury(delivery.receipt, "no".into()).await.unwrap();
        let dead = queue.dead(None, 10).await.unwrap();
        assert_eq!(
            dead.iter()
                .map(|letter| letter.message.clone())
                .collect::<Vec<_>>(),
            [Some(message.clone())]
        );
        assert_eq!(queue.requeue(vec![dead[0].number]).await.unwrap(), 1);
        assert_eq!(take_one(queue, LONG).await.message, message);
    }
}

/// The depth counts what is ready, what is delayed and what is taken.
pub async fn the_depth_tells_what_is_where(backend: Backend) {
    let queue = with_answers(&backend, 6).await;
    let taken = take(queue, 3, LONG).await;
    queue
        .release(taken[0].receipt.clone(), LONG, true)
        .await
        .unwrap();
    queue
        .bury(taken[1].receipt.clone(), "no".into())
        .await
        .unwrap();
    let depth = queue.depth().await.unwrap();
    assert_eq!(
        depth,
        Depth {
            ready: 3,
            later: 1,
            taken: 1,
            dead: 1
        }
    );
    assert_eq!(
        super::support::queue(&backend, QueueName::Fires)
            .depth()
            .await
            .unwrap(),
        Depth::default()
    );
}

/// Whoever waits wakes when a message is published, and finds it again once its lease is over.
pub async fn whoever_waits_wakes_when_there_is_something(backend: Backend) {
    let queue = queue(&backend, QueueName::Answers).clone();
    let waiter = tokio::spawn({
        let queue = queue.clone();
        async move {
            let mut numbers = Vec::new();
            while numbers.len() < 2 {
                let taken = queue.take(1, SHORT).await.unwrap();
                numbers.extend(taken.iter().map(|delivery| delivery.number));
                match numbers.len() {
                    // Nothing but the message wakes it.
                    0 => queue.ready().await,
                    // A lease that is over may be found by looking now and then.
                    _ => drop(tokio::time::timeout(SHORT, queue.ready()).await),
                }
            }
            numbers
        }
    });
    pass(Duration::from_millis(100)).await;
    queue.publish(answers(1)).await.unwrap();
    assert_eq!(must(waiter).await.unwrap(), [1, 2]);
}
