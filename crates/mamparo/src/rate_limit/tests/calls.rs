//! Calls that pass, and calls that are refused at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use mamparo_core::{BoxError, Event, Observer, Plain, What};
use mamparo_testkit::service::{Door, NeverReady, Script, Step, Strict, ready};
use tower::limit::ConcurrencyLimit;
use tower::{Layer, Service, ServiceExt};

use super::super::*;
use super::cast::*;
use crate::retry::{RetryLayer, RetryPolicy};

/// Row E8, of the limiter: what is rejected is not sent. The peers' row: it says when to come back.
#[tokio::test(start_paused = true)]
async fn what_is_over_the_limit_is_rejected_at_once_and_says_when_it_would_pass() {
    let peer = peer();
    let mut mail = limit(per_second(2)).layer(peer.clone());
    for question in [1, 2] {
        assert!(mail.ready().await.unwrap().call(question).await.is_ok());
    }
    let error = mail.ready().await.unwrap().call(3).await.unwrap_err();
    assert_eq!(retry_after(&error), millis(500));
    assert_eq!(error.to_string(), "mail: rate limit is used up: not sent");
    assert_eq!(peer.started(), 2);
    tokio::time::sleep(millis(500)).await;
    assert!(mail.ready().await.unwrap().call(4).await.is_ok());
    assert_eq!(peer.requests(), [1, 2, 4]);
}

/// Row F2: there are no windows, and so no edge between two of them.
#[tokio::test(start_paused = true)]
async fn at_the_edge_of_two_periods_no_second_burst_passes() {
    let peer = peer();
    let mail = limit(per_second(10)).layer(peer.clone());
    tokio::time::sleep(millis(950)).await;
    let calls = |count: u32| {
        let mail = &mail;
        async move {
            for question in 0..count {
                drop(mail.clone().oneshot(question).await);
            }
        }
    };
    calls(10).await;
    assert_eq!(peer.started(), 10);
    tokio::time::sleep(millis(100)).await;
    calls(10).await;
    assert_eq!(peer.started(), 11);
}

/// Row F6, and the peers' row: readiness costs nothing, nor does a clone or a dropped instance; each call costs once.
#[tokio::test(start_paused = true)]
async fn a_call_is_charged_once_and_readiness_not_at_all() {
    let mail = limit(per_second(3)).layer(peer());
    for _ in 0..100 {
        let mut idle = mail.clone();
        ready(&mut idle).await.unwrap();
        ready(&mut idle).await.unwrap();
    }
    for question in 0..3 {
        assert!(mail.clone().oneshot(question).await.is_ok());
    }
    assert!(mail.oneshot(3).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn each_attempt_of_an_operation_is_charged() {
    let failing: Script<u32, u32> = Script::new([]).otherwise(|| Step::error("down"));
    let policy = RetryPolicy::builder().max_attempts(3).build().unwrap();
    let retry = RetryLayer::new(policy, Plain::idempotent());
    let layer = limit(RateLimitPolicy::per(secs(3_600), 4));
    let mail = retry.layer(layer.layer(failing.clone()));
    assert!(mail.clone().oneshot(1).await.is_err());
    assert_eq!(failing.started(), 3);
    let error = mail.oneshot(1).await.unwrap_err();
    assert_eq!(failing.started(), 4);
    // Row P-B18: it is not sent again, since that would be refused as well.
    assert!(rejection(&error).is_rate_limited());
}

/// Row P-C10, of the limiter.
#[tokio::test(start_paused = true)]
async fn one_layer_around_two_services_has_one_limit() {
    let layer = limit(per_second(1));
    let (one, two) = (layer.layer(peer()), layer.clone().layer(peer()));
    assert!(one.oneshot(1).await.is_ok());
    assert!(two.oneshot(1).await.is_err());
}

/// Row T5, of the limiter.
#[tokio::test(start_paused = true)]
async fn an_inner_service_that_is_never_ready_does_not_delay_a_rejection() {
    let layer = limit(per_second(1));
    assert!(layer.layer(peer()).oneshot(1).await.is_ok());
    let mut stuck = layer.layer(NeverReady::<u32>::new());
    ready::<_, u32>(&mut stuck).await.unwrap();
    let error: BoxError = stuck.call(1_u32).await.unwrap_err();
    assert_eq!(retry_after(&error), secs(1));
}

#[tokio::test(start_paused = true)]
async fn a_refused_call_leaves_no_place_of_the_inner_service_taken() {
    let inner = Strict::with_slots(peer(), 1);
    let mut mail = limit(per_second(1)).layer(inner.clone());
    assert!(ready(&mut mail).await.is_ok() && mail.call(1).await.is_ok());
    ready(&mut mail).await.unwrap();
    assert!(mail.call(2).await.is_err());
    assert_eq!(inner.ready_slots(), 0);
}

/// Law 3: nor a place in its queue, which would be given to an instance that nobody uses.
#[tokio::test(start_paused = true)]
async fn a_refused_call_leaves_no_place_in_the_inner_services_queue_taken() {
    let queue = ConcurrencyLimit::new(peer(), 1);
    let layer = limit(per_second(1));
    let (mut used, mut idle) = (layer.layer(queue.clone()), layer.layer(queue.clone()));
    ready(&mut used).await.unwrap();
    let running = used.call(1);
    ready(&mut idle).await.unwrap(); // pending inside, behind the call that runs
    assert!(idle.call(2).await.is_err());
    assert!(running.await.is_ok());
    let next = tokio::time::timeout(secs(1), queue.oneshot(3)).await;
    assert!(
        next.is_ok(),
        "the place went to an instance that is not used"
    );
}

/// Law 4: it was let pass, and then nothing was sent.
#[tokio::test(start_paused = true)]
async fn a_call_that_goes_away_before_it_is_sent_gives_its_cost_back() {
    let (door, peer) = (Door::closed(), peer());
    let layer = limit(per_second(1));
    let mut mail = layer.layer(door.before(peer.clone()));
    for question in 0..5 {
        ready(&mut mail).await.unwrap();
        let mut call = in_hand(mail.call(question));
        assert!(call.poll_once().is_pending());
    }
    door.open();
    assert!(mail.clone().oneshot(5).await.is_ok());
    assert!(mail.oneshot(6).await.is_err());
    assert_eq!(peer.requests(), [5]);
}

/// Rows F1 and law 4: the inner service hangs, and its callers give up in the order in which they came.
#[tokio::test(start_paused = true)]
async fn calls_that_go_away_in_order_before_they_are_sent_give_all_of_it_back() {
    let door = Door::closed();
    let layer = limit(RateLimitPolicy::per(secs(30), 3));
    let stuck = layer.layer(door.before(peer()));
    let calls: Vec<_> = (0..3)
        .map(|question| tokio::spawn(stuck.clone().oneshot(question)))
        .collect();
    tokio::time::sleep(secs(1)).await;
    for call in calls {
        call.abort();
        assert!(call.await.unwrap_err().is_cancelled());
    }
    let mail = layer.layer(peer());
    for question in 0..3 {
        assert!(mail.clone().oneshot(question).await.is_ok());
    }
    assert!(mail.oneshot(3).await.is_err());
}

/// A future in the test's hand, polled without being awaited.
struct InHand<F>(std::pin::Pin<Box<F>>);

fn in_hand<F: Future>(future: F) -> InHand<F> {
    InHand(Box::pin(future))
}

impl<F: Future> InHand<F> {
    fn poll_once(&mut self) -> std::task::Poll<F::Output> {
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        self.0.as_mut().poll(&mut cx)
    }
}

#[tokio::test(start_paused = true)]
async fn a_heavier_call_pays_more_and_one_above_the_burst_is_rejected_for_good() {
    let layer = limit(per_second(10).burst(5)).cost(|question: &u32| *question);
    let mail = layer.layer(peer());
    assert!(mail.clone().oneshot(3).await.is_ok());
    let error = mail.clone().oneshot(4).await.unwrap_err();
    assert_eq!(retry_after(&error), millis(200));
    assert!(mail.clone().oneshot(2).await.is_ok());
    let error = mail.oneshot(6).await.unwrap_err();
    assert_eq!(rejection(&error).retry_after(), None);
    assert_eq!(
        error.to_string(),
        "mail: costs more than the rate limit ever lets pass at once: not sent"
    );
}

#[tokio::test(start_paused = true)]
async fn a_cost_function_that_panics_has_taken_nothing() {
    let cost = |question: &u32| {
        if *question == 9 {
            panic!("on purpose")
        } else {
            1
        }
    };
    let mail = limit(per_second(1)).cost(cost).layer(peer());
    for _ in 0..3 {
        let call = tokio::spawn(mail.clone().oneshot(9));
        assert!(call.await.is_err());
    }
    assert!(mail.oneshot(1).await.is_ok());
}

#[derive(Debug, Default)]
struct Rejections(AtomicUsize);

impl Observer for Rejections {
    fn on(&self, event: &Event<'_>) {
        if matches!(event.what, What::Rejected(rejection) if rejection.is_rate_limited()) {
            self.0.fetch_add(1, Relaxed);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_rejection_is_reported() {
    let seen = Arc::new(Rejections::default());
    let mail = limit(per_second(1)).observer(seen.clone()).layer(peer());
    for question in 0..3 {
        drop(mail.clone().oneshot(question).await);
    }
    assert_eq!(seen.0.load(Relaxed), 2);
}

/// Rows F7 and J11: the rate is named by whoever makes a limit, and no default stands in for it.
#[test]
fn nonsense_is_refused_when_the_policy_is_built() {
    let refused = |policy: RateLimitBuilder| policy.build().unwrap_err().setting();
    assert_eq!(refused(RateLimitPolicy::per(secs(1), 0)), "rate");
    assert_eq!(refused(RateLimitPolicy::per(Duration::ZERO, 1)), "rate");
    assert_eq!(
        refused(RateLimitPolicy::per(Duration::from_nanos(500), 501)),
        "rate"
    );
    assert_eq!(refused(RateLimitPolicy::per(Duration::MAX, 1)), "rate");
    assert_eq!(refused(per_second(1).burst(0)), "burst");
    assert_eq!(refused(per_second(1).max_keys(0)), "max_keys");
    assert_eq!(refused(per_second(1).max_waiting(0)), "max_waiting");
    assert_eq!(refused(per_second(1).obey(Duration::ZERO)), "obey");
    let largest = per_second(u32::MAX / 8)
        .burst(u32::MAX)
        .max_wait(Duration::MAX)
        .max_waiting(u32::MAX)
        .max_keys(usize::MAX);
    assert!(largest.build().is_ok());
}
