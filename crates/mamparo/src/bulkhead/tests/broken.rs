//! What a user's code may do to a bulkhead: observers and clones that panic, settings at their limits, clumsy moments.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use mamparo_core::{BoxError, Event, Observer, Tenant};
use mamparo_testkit::service::Step;
use tower::{Layer, Service, ServiceExt};

use super::super::places::{Entry, Places};
use super::super::*;
use super::cast::*;

#[derive(Debug)]
struct Panics;

impl Observer for Panics {
    fn on(&self, _: &Event<'_>) {
        panic!("an observer that panics");
    }
}

/// Row E7: an observer that panics, as a call is refused, has waited, or has waited too long.
#[tokio::test(start_paused = true)]
async fn an_observer_that_panics_takes_no_place_along() {
    let layer = plain(sized(1, 1)).observer(Arc::new(Panics));
    let (service, handle) = (layer.layer(slow(millis(50))), layer.handle());
    let first = spawned(&service).await;
    let waits = spawned(&service).await;
    assert!(tokio::spawn(service.clone().oneshot(1)).await.is_err());
    first.await.unwrap().unwrap();
    assert!(waits.await.unwrap_err().is_panic(), "it had its place");
    assert_eq!((handle.in_flight(), handle.queued()), (0, 0));

    let peer = Peer::new([]).otherwise(|| Step::answer(7).after(millis(500)));
    let service = layer.layer(peer);
    let first = spawned(&service).await;
    let waits_too_long = spawned(&service).await;
    assert!(waits_too_long.await.unwrap_err().is_panic());
    assert_eq!((handle.in_flight(), handle.queued()), (1, 0));
    first.await.unwrap().unwrap();
    assert_eq!(handle.in_flight(), 0);
}

/// A service whose clones may be made only so often.
struct Uncopied(Arc<AtomicUsize>);

impl Clone for Uncopied {
    fn clone(&self) -> Self {
        let left = self.0.load(Ordering::SeqCst);
        self.0.store(
            left.checked_sub(1).expect("a clone that panics"),
            Ordering::SeqCst,
        );
        Self(Arc::clone(&self.0))
    }
}

impl Service<u32> for Uncopied {
    type Response = u32;
    type Error = BoxError;
    type Future = std::future::Pending<Result<u32, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: u32) -> Self::Future {
        std::future::pending()
    }
}

/// Row E7: who would have waited, had it not panicked, is not waited for.
#[tokio::test(start_paused = true)]
async fn a_clone_that_panics_leaves_nobody_in_the_line() {
    let left = Arc::new(AtomicUsize::new(1));
    let layer = plain(sized(1, 1));
    let mut service = layer.layer(Uncopied(Arc::clone(&left)));
    let mut waits = service.clone();
    let mut cx = Context::from_waker(Waker::noop());
    assert!(service.poll_ready(&mut cx).is_ready() && waits.poll_ready(&mut cx).is_ready());
    let call = service.call(1);
    let panicked = tokio::spawn(async move { waits.call(1).await });
    assert!(panicked.await.unwrap_err().is_panic());
    assert_eq!(layer.handle().queued(), 0);
    drop(call);
    assert_eq!(layer.handle().in_flight(), 0);
}

/// Row D6: who has got its place is not woken again because its wait would have been over.
#[tokio::test(start_paused = true)]
async fn a_wait_that_is_over_leaves_no_timer_behind() {
    #[derive(Default)]
    struct Woken(AtomicUsize);
    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let peer = Peer::new([Step::answer(7).after(millis(20))]).otherwise(Step::hang);
    let service = plain(sized(1, 1)).layer(peer);
    let first = spawned(&service).await;
    let woken = Arc::<Woken>::default();
    let waker = Waker::from(Arc::clone(&woken));
    let mut cx = Context::from_waker(&waker);
    let mut waits = called(&service);
    assert!(waits.as_mut().poll(&mut cx).is_pending());
    first.await.unwrap().unwrap();
    assert_eq!(woken.0.load(Ordering::SeqCst), 1);
    assert!(waits.as_mut().poll(&mut cx).is_pending(), "it runs");
    tokio::time::sleep(millis(500)).await;
    assert_eq!(woken.0.load(Ordering::SeqCst), 1);
}

/// Row E4, with shares: in the moment in which places are there and not handed over yet, nobody overtakes either.
#[test]
fn a_newcomer_does_not_take_a_place_that_who_waits_is_about_to_get() {
    let partitions = Partitions::builder().build().unwrap();
    let [one, other] = ["one", "other"].map(|name| partitions.seat(Some(Tenant::of(name))));
    let places = Places::new(1, 8, Some(partitions));
    assert_eq!(places.enter(one), Entry::Entered);
    let Entry::Queued(first) = places.enter(one) else {
        panic!("it does not wait")
    };
    places.set_limit(2);
    for newcomer in [one, other] {
        assert!(matches!(places.enter(newcomer), Entry::Queued(_)));
    }
    places.serve();
    assert!(places.poll(first, &Context::from_waker(Waker::noop())));
    let now = places.occupancy();
    assert_eq!((now.in_flight(), now.queued()), (2, 2));
    for _ in 0..4 {
        places.leave(if places.running_for(one) > 0 {
            one
        } else {
            other
        });
    }
    let now = places.occupancy();
    assert_eq!((now.in_flight(), now.queued()), (0, 0));
}

/// Limits as large as they can be said.
#[tokio::test(start_paused = true)]
async fn the_largest_numbers_are_settings_like_others() {
    let most = sized(usize::MAX, usize::MAX).max_wait(Duration::MAX);
    let layer = plain(most.min_attempt_time(Duration::MAX));
    let service = layer.layer(hanging());
    layer.handle().resize(1).unwrap();
    let mut calls = [called(&service), called(&service)];
    assert!(calls.iter_mut().all(|call| poll(call).is_pending()));
    assert_eq!(
        (layer.handle().in_flight(), layer.handle().queued()),
        (1, 1)
    );
    layer.handle().resize(usize::MAX).unwrap();
    assert!(calls.iter_mut().all(|call| poll(call).is_pending()));
    assert_eq!(
        (layer.handle().in_flight(), layer.handle().limit()),
        (2, MOST_PLACES)
    );
    let error = within(millis(1), async {
        layer.handle().resize(1).unwrap();
        service.clone().oneshot(1).await
    });
    assert!(rejection(&error.await.unwrap_err()).is_bulkhead_full());
}
