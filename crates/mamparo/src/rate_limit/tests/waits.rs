//! Calls that wait for their turn.

use std::task::{Context, Waker};

use mamparo_core::{Reason, clock};
use mamparo_testkit::service::Strict;
use tower::{Layer, Service, ServiceExt};

use super::super::*;
use super::cast::*;
use crate::deadline::{DeadlineLayer, DeadlinePolicy};

/// Row F1: whoever goes away while it waits has taken nothing.
#[tokio::test(start_paused = true)]
async fn waiters_that_go_away_leave_their_turns_to_others() {
    let policy = RateLimitPolicy::per(secs(2), 1).max_wait(secs(60));
    let mail = limit(policy).layer(peer());
    mail.clone().oneshot(0).await.unwrap();
    let waiters: Vec<_> = (0..5)
        .map(|question| tokio::spawn(mail.clone().oneshot(question)))
        .collect();
    tokio::time::sleep(millis(100)).await;
    for waiter in &waiters {
        waiter.abort();
    }
    let start = clock::now();
    mail.oneshot(9).await.unwrap();
    assert!(start.elapsed() <= secs(2), "{:?}", start.elapsed());
}

/// Row E2, of the limiter: the one at the head goes away, and the next moves up.
#[tokio::test(start_paused = true)]
async fn when_the_first_in_the_queue_goes_away_the_next_takes_its_turn() {
    let peer = peer();
    let mail = limit(per_second(1).max_wait(secs(60))).layer(peer.clone());
    let start = clock::now();
    mail.clone().oneshot(0).await.unwrap();
    let first = tokio::spawn(mail.clone().oneshot(1));
    let next = tokio::spawn(mail.clone().oneshot(2));
    tokio::time::sleep(millis(500)).await;
    first.abort();
    next.await.unwrap().unwrap();
    assert_eq!(peer.requests(), [0, 2]);
    assert!(start.elapsed() < millis(1_005), "{:?}", start.elapsed());
}

/// Rows F4 and P-C12: each waits its share, in the order of arrival, and all together pass no faster than the rate.
#[tokio::test(start_paused = true)]
async fn many_waiters_pass_one_by_one_at_the_rate() {
    let peer = peer();
    let policy = per_second(10).burst(1).max_wait(secs(60));
    let mail = limit(policy).layer(peer.clone());
    let start = clock::now();
    let calls: Vec<_> = (0..50)
        .map(|question| tokio::spawn(mail.clone().oneshot(question)))
        .collect();
    for call in calls {
        call.await.unwrap().unwrap();
    }
    assert_eq!(peer.requests(), (0..50).collect::<Vec<_>>());
    for (nth, at) in peer.starts().into_iter().enumerate() {
        let (after, due) = (at - start, millis(100) * nth as u32);
        // Never early; late by the grain of timers, at each turn.
        assert!(after >= due, "{nth} came after {after:?}");
        assert!(after <= due + millis(2) * nth as u32, "{nth}: {after:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_newcomer_does_not_overtake_those_that_wait() {
    let peer = peer();
    let policy = per_second(10).burst(5).max_wait(secs(60));
    let layer = limit(policy).cost(|question: &u32| if *question == 5 { 5 } else { 1 });
    let mail = layer.layer(peer.clone());
    mail.clone().oneshot(0).await.unwrap();
    let heavy = tokio::spawn(mail.clone().oneshot(5));
    tokio::task::yield_now().await;
    mail.oneshot(1).await.unwrap();
    heavy.await.unwrap().unwrap();
    assert_eq!(peer.requests(), [0, 5, 1]);
}

/// A caller that was polled once and then forgotten: the limit is still the others'.
#[tokio::test(start_paused = true)]
async fn one_that_is_polled_no_more_does_not_hold_up_the_others_for_good() {
    let peer = peer();
    let mail = limit(per_second(10).burst(1).max_wait(secs(5))).layer(peer.clone());
    mail.clone().oneshot(0).await.unwrap();
    let mut forgotten = Box::pin(mail.clone().oneshot(1));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(forgotten.as_mut().poll(&mut cx).is_pending());
    let start = clock::now();
    for question in 2..12 {
        mail.clone().oneshot(question).await.unwrap();
    }
    assert!(start.elapsed() < secs(5), "{:?}", start.elapsed());
    assert!(start.elapsed() >= secs(1), "and they keep to the rate");
    forgotten.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_wait_longer_than_the_longest_is_refused_at_once() {
    let mail = limit(per_second(10).burst(1).max_wait(millis(250))).layer(peer());
    let start = clock::now();
    let calls: Vec<_> = (0..5)
        .map(|question| tokio::spawn(mail.clone().oneshot(question)))
        .collect();
    let mut ends = Vec::new();
    for call in calls {
        ends.push(call.await.unwrap().map_err(|error| retry_after(&error)));
        if ends.len() == 3 {
            assert!(start.elapsed() <= millis(205));
        }
    }
    assert_eq!(
        ends,
        [Ok(1), Ok(1), Ok(1), Err(millis(300)), Err(millis(300))]
    );
}

/// Row E10, of the limiter: a queue has a bound.
#[tokio::test(start_paused = true)]
async fn more_than_may_wait_are_refused_at_once() {
    let policy = per_second(1).max_wait(secs(3_600)).max_waiting(3);
    let mail = limit(policy).layer(peer());
    let calls: Vec<_> = (0..6)
        .map(|question| tokio::spawn(mail.clone().oneshot(question)))
        .collect();
    tokio::time::sleep(millis(1)).await;
    let refused = calls.iter().filter(|call| call.is_finished()).count();
    assert_eq!(refused, 1 + 2, "one has passed, two had no place");
}

/// Law 7: it would not be sent in time, so it does not wait.
#[tokio::test(start_paused = true)]
async fn nobody_waits_for_a_turn_past_the_deadline() {
    let layer = limit(per_second(1).max_wait(secs(60)));
    let peer = peer();
    let deadline = DeadlineLayer::new(DeadlinePolicy::within(millis(900)).unwrap());
    let mail = deadline.layer(layer.layer(peer.clone()));
    assert!(mail.clone().oneshot(1).await.is_ok());
    let start = clock::now();
    let error = mail.oneshot(2).await.unwrap_err();
    assert_eq!(retry_after(&error), secs(1));
    assert!(start.elapsed().is_zero());
    assert_eq!(peer.started(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_holds_no_place_of_the_inner_service() {
    let inner = Strict::with_slots(peer(), 1);
    let mut mail = limit(per_second(1).max_wait(secs(60))).layer(inner.clone());
    mail.ready().await.unwrap().call(1).await.unwrap();
    let waiting = tokio::spawn(mail.ready().await.unwrap().call(2));
    tokio::time::sleep(millis(500)).await;
    assert!(!waiting.is_finished());
    assert_eq!(inner.ready_slots(), 0);
    assert_eq!(waiting.await.unwrap().unwrap(), 1);
    assert_eq!(inner.ready_slots(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_call_above_the_burst_does_not_wait_for_ever() {
    let policy = per_second(10).burst(5).max_wait(secs(3_600));
    let mail = limit(policy).cost(|cost: &u32| *cost).layer(peer());
    let error = mail.clone().oneshot(6).await.unwrap_err();
    assert_eq!(rejection(&error).reason(), Reason::AboveBurst);
    mail.clone().oneshot(5).await.unwrap();
    let waiting = tokio::spawn(mail.clone().oneshot(5));
    tokio::task::yield_now().await;
    let error = mail.oneshot(6).await.unwrap_err();
    assert_eq!(rejection(&error).reason(), Reason::AboveBurst);
    waiting.await.unwrap().unwrap();
}
