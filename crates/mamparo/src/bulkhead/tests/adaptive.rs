//! An adaptive limit, as callers move it.

use mamparo_core::{Rejection, clock};
use mamparo_testkit::service::Step;
use tower::{Layer, ServiceExt};

use super::super::*;
use super::cast::*;
use crate::deadline::{DeadlineLayer, DeadlinePolicy};

/// Begins at 20, and moves after each ten calls that took a tenth of a second.
fn adaptive(algorithm: impl LimitAlgorithm) -> BulkheadBuilder {
    let adaptive = AdaptiveLimit::builder(algorithm).build().unwrap();
    sized(20, 100).adaptive(adaptive)
}

/// So many calls, five at a time.
async fn calls(service: &Caller, count: usize) {
    for _ in 0..count / 5 {
        let calls: Vec<_> = (0..5)
            .map(|_| tokio::spawn(service.clone().oneshot(1)))
            .collect();
        for call in calls {
            drop(call.await.unwrap());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_limit_moves_with_what_is_in_flight_and_says_so() {
    let heard = Heard::default();
    let layer = plain(adaptive(Aimd::default())).observer(heard.observer());
    let service = layer.layer(slow(millis(50)));
    calls(&service, 15).await;
    assert_eq!(heard.all(), ["20 to 10"], "twice of what was tried");
    assert_eq!(layer.handle().limit(), 10);
}

/// Law 6: our own cut is the dependency's failure.
#[tokio::test(start_paused = true)]
async fn calls_that_are_cut_or_throttled_lower_the_limit() {
    let throttled =
        || Step::error(std::io::Error::from(std::io::ErrorKind::TimedOut)).after(millis(50));
    let headroom = AdaptiveLimit::builder(Halving).headroom(100.0);
    let policy = sized(20, 100).adaptive(headroom.build().unwrap());
    let layer = plain(policy.clone());
    let service = layer.layer(Peer::new([]).otherwise(throttled));
    calls(&service, 15).await;
    assert_eq!(layer.handle().limit(), 10);

    let layer = plain(policy);
    let deadline = DeadlineLayer::new(DeadlinePolicy::within(millis(60)).unwrap());
    let service = deadline.layer(layer.layer(hanging()));
    for _ in 0..15 {
        let error = service.clone().oneshot(1).await.unwrap_err();
        assert!(Rejection::of(&*error).is_some_and(Rejection::is_deadline_exceeded));
    }
    assert_eq!(layer.handle().limit(), 10);
}

#[derive(Debug)]
struct Halving;

impl LimitAlgorithm for Halving {
    fn next(&self, limit: f64, window: &Window) -> f64 {
        if window.is_overloaded() {
            limit / 2.0
        } else {
            limit
        }
    }
}

/// A cancelled call says nothing, however long it took; nor does one that was never sent.
#[tokio::test(start_paused = true)]
async fn calls_that_are_cancelled_move_nothing() {
    let heard = Heard::default();
    let layer = plain(adaptive(Aimd::default())).observer(heard.observer());
    let service = layer.layer(hanging());
    let start = clock::now();
    for _ in 0..100 {
        let call = tokio::time::timeout(millis(20), service.clone().oneshot(1));
        assert!(call.await.is_err());
    }
    assert!(clock::now() - start >= millis(2_000));
    assert_eq!((heard.all().len(), layer.handle().limit()), (0, 20));
    assert_eq!(layer.handle().in_flight(), 0);
}

/// In paused time, calls of no length at all.
#[tokio::test(start_paused = true)]
async fn calls_that_take_no_time_move_nothing() {
    let layer = plain(adaptive(Vegas));
    let service = layer.layer(slow(millis(0)));
    for _ in 0..10 {
        calls(&service, 20).await;
        tokio::time::advance(millis(200)).await;
    }
    assert_eq!(layer.handle().limit(), 20);
}

#[tokio::test(start_paused = true)]
async fn resizing_by_hand_stays_within_bounds_and_is_where_it_goes_on_from() {
    let layer = plain(adaptive(Aimd::default()));
    let handle = layer.handle();
    handle.resize(1).unwrap();
    assert_eq!(handle.limit(), 4);
    handle.resize(5_000).unwrap();
    assert_eq!(handle.limit(), 1_000);
    handle.resize(8).unwrap();
    calls(&layer.layer(slow(millis(50))), 15).await;
    assert_eq!(handle.limit(), 9);
}

/// Who waits gets in when the limit grows, without anybody leaving.
#[tokio::test(start_paused = true)]
async fn a_limit_that_grows_lets_waiters_in() {
    #[derive(Debug)]
    struct Growing;
    impl LimitAlgorithm for Growing {
        fn next(&self, limit: f64, _: &Window) -> f64 {
            limit + 4.0
        }
    }
    let steps = (0..4).map(|_| Step::answer(7).after(millis(60)));
    let peer = Peer::new(steps.chain((0..7).map(|_| Step::answer(7).after(millis(120)))))
        .otherwise(Step::hang);
    let adaptive = AdaptiveLimit::builder(Growing).build().unwrap();
    let layer = plain(sized(10, 20).max_wait(millis(5_000)).adaptive(adaptive));
    let service = layer.layer(peer.clone());
    let calls: Vec<_> = (0..30)
        .map(|_| tokio::spawn(service.clone().oneshot(1)))
        .collect();
    tokio::time::sleep(millis(300)).await;
    assert_eq!(layer.handle().limit(), 14);
    assert_eq!(
        (layer.handle().in_flight(), layer.handle().queued()),
        (14, 5)
    );
    calls.iter().for_each(tokio::task::JoinHandle::abort);
}

/// An algorithm that panics breaks its own window and nothing else.
#[tokio::test(start_paused = true)]
async fn an_algorithm_that_panics_or_says_nonsense_takes_no_place_along() {
    #[derive(Debug)]
    struct Broken;
    impl LimitAlgorithm for Broken {
        fn next(&self, limit: f64, _: &Window) -> f64 {
            assert!(limit < 20.0, "at 20 it panics");
            f64::NAN
        }
    }
    let layer = plain(adaptive(Broken));
    let service = layer.layer(slow(millis(50)));
    let mut panics = 0;
    for _ in 0..50 {
        panics += usize::from(tokio::spawn(service.clone().oneshot(1)).await.is_err());
    }
    assert!(panics > 1, "each window's end");
    let handle = layer.handle();
    assert_eq!((handle.in_flight(), handle.limit()), (0, 20));
    handle.resize(10).unwrap();
    calls(&service, 50).await;
    assert_eq!((handle.in_flight(), handle.limit()), (0, 10));
}
