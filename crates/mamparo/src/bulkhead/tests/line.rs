//! The line of those who wait: who gets in, in which order, and who gives up.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use mamparo_core::{Reason, clock};
use mamparo_testkit::service::{Script, Step, Strict, ready};
use tower::{Layer, Service, ServiceExt};

use super::super::*;
use super::cast::*;

/// Row E10: a queue has a bound, and a default. Row E8: who is refused has done nothing.
#[tokio::test(start_paused = true)]
async fn sixty_four_run_sixty_four_wait_and_the_next_is_refused_at_once() {
    let peer = hanging();
    let layer = plain(BulkheadPolicy::builder());
    let service = layer.layer(peer.clone());
    let mut calls: Vec<_> = (0..128).map(|_| called(&service)).collect();
    assert!(calls.iter_mut().all(|call| poll(call).is_pending()));
    let handle = layer.handle();
    assert_eq!((handle.in_flight(), handle.queued()), (64, 64));
    assert_eq!(peer.started(), 64);

    let start = clock::now();
    let error = service.oneshot(1).await.unwrap_err();
    assert_eq!(clock::now(), start);
    assert_eq!(error.to_string(), "catalog: bulkhead is full: not sent");
    assert_eq!(rejection(&error).reason(), Reason::BulkheadFull);
    assert!(!rejection(&error).sent());
    assert_eq!(peer.started(), 64);
    drop(calls);
    assert_eq!((handle.in_flight(), handle.queued()), (0, 0));
}

/// Row E4: of a full line it is the newest that is refused, never one that waits already.
#[tokio::test(start_paused = true)]
async fn those_who_wait_get_in_in_their_order_and_nobody_overtakes() {
    let peer = Script::<u32, u32, u32>::noting(|&request| request, [])
        .otherwise(|| Step::answer(7).after(millis(10)));
    let service = plain(sized(1, 3)).layer(peer.clone());
    let calls = [1, 2, 3, 4, 5].map(|number| {
        let mut service = service.clone();
        tokio::spawn(service.call(number))
    });
    tokio::time::sleep(millis(10)).await;
    // The place is free for a moment; whoever comes in that moment lines up.
    let late = tokio::spawn(service.clone().oneshot(6));
    let mut ends = Vec::new();
    for call in calls {
        ends.push(call.await.unwrap().is_ok());
    }
    assert_eq!(ends, [true, true, true, true, false]);
    late.await.unwrap().unwrap();
    assert_eq!(peer.requests(), [1, 2, 3, 4, 6]);
    assert_eq!(peer.max_running(), 1);
}

/// Row E1: what waiters leave behind that gave up is nothing.
#[tokio::test(start_paused = true)]
async fn waiters_that_time_out_take_no_place_along() {
    let peer = slow(millis(80));
    let layer = plain(sized(8, 8).max_wait(millis(50)));
    let service = layer.layer(peer.clone());
    let calls: Vec<_> = (0..16)
        .map(|_| tokio::spawn(service.clone().oneshot(1)))
        .collect();
    let start = clock::now();
    let mut refused = 0;
    for call in calls {
        if let Err(error) = call.await.unwrap() {
            refused += 1;
            let text = "catalog: bulkhead is full: no place within 50ms";
            assert_eq!(error.to_string(), text);
        }
    }
    assert_eq!((refused, peer.started()), (8, 8));
    assert_eq!(clock::now() - start, millis(80));
    let handle = layer.handle();
    assert_eq!((handle.in_flight(), handle.queued()), (0, 0));
    for _ in 0..8 {
        assert_eq!(service.clone().oneshot(1).await.unwrap(), 7);
    }
}

/// Row P-C11: within the longest wait.
#[tokio::test(start_paused = true)]
async fn a_wait_ends_when_its_time_is_up_and_says_how_long_it_was() {
    let heard = Heard::default();
    let layer = plain(sized(1, 2)).observer(heard.observer());
    let service = layer.layer(slow(millis(99)));
    let start = clock::now();
    let [first, second, third] = [(); 3].map(|()| tokio::spawn(service.clone().oneshot(1)));
    first.await.unwrap().unwrap();
    third.await.unwrap().unwrap_err();
    assert_eq!(clock::now() - start, millis(100));
    second.await.unwrap().unwrap();
    let waits = [
        "waited 99ms for one of 1",
        "catalog: bulkhead is full: no place within 100ms",
    ];
    assert_eq!(heard.all(), waits);
}

/// Row P-A10: a wait counts against the deadline, and a request whose time passes in the queue is never sent.
#[tokio::test(start_paused = true)]
async fn no_wait_goes_past_what_makes_sense_before_the_deadline() {
    let peer = hanging();
    let service = plain(sized(1, 4)).layer(peer.clone());
    let _holder = spawned(&service).await;
    for (remaining, waits) in [(millis(50), millis(40)), (millis(500), millis(100))] {
        let start = clock::now();
        let error = within(remaining, service.clone().oneshot(1))
            .await
            .unwrap_err();
        assert_eq!(clock::now() - start, waits, "of {remaining:?}");
        assert_eq!(rejection(&error).reason(), Reason::BulkheadFull);
    }
    let start = clock::now();
    let error = within(millis(5), service.clone().oneshot(1)).await;
    assert_eq!(clock::now(), start, "less than an attempt takes");
    assert!(error.is_err());
    assert_eq!(peer.started(), 1);
}

/// Row P-A10, on a busy machine: the place came in time, the task was polled too late.
#[tokio::test(start_paused = true)]
async fn a_place_that_is_noticed_after_the_deadline_is_given_back_unused() {
    let peer = slow(millis(20));
    let layer = plain(sized(1, 4));
    let service = layer.layer(peer.clone());
    let holder = spawned(&service).await;
    let mut waiter: Call<u32> = Box::pin(within(millis(60), service.clone().oneshot(1)));
    assert!(poll(&mut waiter).is_pending());
    holder.await.unwrap().unwrap();
    assert_eq!(layer.handle().in_flight(), 1, "it was handed over");
    tokio::time::advance(millis(50)).await;
    let Poll::Ready(Err(error)) = poll(&mut waiter) else {
        panic!("it waits on")
    };
    assert!(rejection(&error).is_bulkhead_full());
    assert_eq!((peer.started(), layer.handle().in_flight()), (1, 0));
}

/// Row E7: cancelled while queued, it never runs; row P-C11: it leaves the queue.
#[tokio::test(start_paused = true)]
async fn a_cancelled_waiter_leaves_the_line_and_those_behind_move_up() {
    let peer = hanging();
    let layer = plain(sized(1, 3));
    let service = layer.layer(peer.clone());
    let holder = spawned(&service).await;
    let mut waiters: Vec<_> = (0..3).map(|_| called(&service)).collect();
    drop(waiters.remove(0));
    assert_eq!(layer.handle().queued(), 2);
    drop(waiters.remove(1));
    assert_eq!(layer.handle().queued(), 1);
    holder.abort();
    assert!(holder.await.is_err());
    assert_eq!(layer.handle().in_flight(), 1);
    assert!(poll(&mut waiters[0]).is_pending());
    assert_eq!(peer.started(), 2);
}

/// Row E2: a place that was handed to somebody who is gone goes to the next.
#[tokio::test(start_paused = true)]
async fn who_is_cancelled_after_the_hand_over_passes_the_place_on() {
    let peer = slow(millis(10));
    let layer = plain(sized(1, 3));
    let service = layer.layer(peer.clone());
    let holder = spawned(&service).await;
    let first = called(&service);
    let second = spawned(&service).await;
    holder.await.unwrap().unwrap();
    assert_eq!(
        (layer.handle().in_flight(), layer.handle().queued()),
        (1, 1)
    );
    drop(first);
    assert_eq!(
        (layer.handle().in_flight(), layer.handle().queued()),
        (1, 0)
    );
    assert_eq!(second.await.unwrap().unwrap(), 7);
    assert_eq!((peer.started(), layer.handle().in_flight()), (2, 0));
}

/// Row P-C12, for places: each waits for those before it and no longer, and is woken once.
#[tokio::test(start_paused = true)]
async fn waiters_each_wait_their_share_and_nobody_spins() {
    #[derive(Default)]
    struct Woken(AtomicUsize);
    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let service = plain(sized(1, 64).max_wait(millis(10_000))).layer(slow(millis(10)));
    let (start, holder) = (clock::now(), spawned(&service).await);
    let woken = Arc::<Woken>::default();
    let mut watched = called(&service);
    let waker = Waker::from(Arc::clone(&woken));
    assert!(
        watched
            .as_mut()
            .poll(&mut Context::from_waker(&waker))
            .is_pending()
    );
    let waiters: Vec<_> = (0..20)
        .map(|_| tokio::spawn(service.clone().oneshot(1)))
        .collect();
    holder.await.unwrap().unwrap();
    assert_eq!(woken.0.load(Ordering::SeqCst), 1);
    watched.await.unwrap();
    for (before, waiter) in waiters.into_iter().enumerate() {
        waiter.await.unwrap().unwrap();
        assert_eq!(clock::now() - start, millis(30 + 10 * before as u64));
    }
}

/// Laws 2 and 3: a ready slot of the inner service is not kept through the wait.
#[tokio::test(start_paused = true)]
async fn who_waits_holds_nothing_of_the_inner_service() {
    let inner = Strict::with_slots(slow(millis(10)), 2);
    let mut service = plain(sized(1, 3)).layer(inner.clone());
    ready(&mut service).await.unwrap();
    let mut other = service.clone();
    ready(&mut other).await.unwrap();
    let first = tokio::spawn(other.call(1));
    let second = tokio::spawn(service.call(1));
    tokio::task::yield_now().await;
    assert_eq!(inner.ready_slots(), 0);
    assert_eq!(first.await.unwrap().unwrap(), 7);
    assert_eq!(second.await.unwrap().unwrap(), 7);
}

#[tokio::test(start_paused = true)]
async fn without_a_queue_or_without_a_longest_wait() {
    let peer = slow(millis(5_000));
    let service = plain(sized(1, 0)).layer(peer.clone());
    let _holder = spawned(&service).await;
    let start = clock::now();
    assert!(service.oneshot(1).await.is_err());
    assert_eq!(clock::now(), start);

    let service = plain(sized(1, 1).wait_until_deadline()).layer(slow(millis(5_000)));
    let _holder = spawned(&service).await;
    let error = within(millis(3_000), service.clone().oneshot(1))
        .await
        .unwrap_err();
    assert_eq!(clock::now() - start, millis(2_990));
    assert!(rejection(&error).is_bulkhead_full());
    assert_eq!(service.oneshot(1).await.unwrap(), 7);
}

#[tokio::test(start_paused = true)]
async fn resizing_lets_in_who_fits_and_throws_nobody_out() {
    let peer = hanging();
    let layer = plain(sized(2, 8));
    let (service, handle) = (layer.layer(peer.clone()), layer.handle());
    let mut calls: Vec<_> = (0..8).map(|_| called(&service)).collect();
    handle.resize(5).unwrap();
    assert_eq!(
        (handle.limit(), handle.in_flight(), handle.queued()),
        (5, 5, 3)
    );
    handle.resize(1).unwrap();
    assert_eq!(
        (handle.limit(), handle.in_flight(), handle.queued()),
        (1, 5, 3)
    );
    assert!(calls.iter_mut().all(|call| poll(call).is_pending()));
    assert_eq!(peer.started(), 5);
    calls.drain(..4);
    assert_eq!((handle.in_flight(), handle.queued()), (1, 3), "still full");
    calls.drain(..1);
    assert_eq!((handle.in_flight(), handle.queued()), (1, 2));
    handle.resize(usize::MAX).unwrap();
    assert_eq!((handle.limit(), handle.queued()), (MOST_PLACES, 0));
    assert_eq!(handle.resize(0).unwrap_err().setting(), "limit");
    drop(calls);
    assert_eq!(handle.in_flight(), 0);
}

/// Without a runtime, so that whoever makes a timer panics.
#[test]
fn a_call_that_finds_a_place_makes_no_timer() {
    let mut service = plain(BulkheadPolicy::builder()).layer(Peer::new([Step::answer(7)]));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(service.poll_ready(&mut cx).is_ready());
    let mut call = std::pin::pin!(service.call(1));
    assert!(matches!(call.as_mut().poll(&mut cx), Poll::Ready(Ok(7))));
}
