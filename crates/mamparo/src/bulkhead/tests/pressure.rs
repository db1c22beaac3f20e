//! Back-pressure: the wait is in `poll_ready`, as in tower's own limit (row T10: a mode, not a fork).

use std::task::{Context, Poll, Waker};

use mamparo_testkit::service::{Door, Step, ready};
use tower::{Layer, Service};

use super::cast::*;

fn poll_ready(service: &mut Caller) -> bool {
    let mut cx = Context::from_waker(Waker::noop());
    matches!(service.poll_ready(&mut cx), Poll::Ready(Ok(())))
}

#[tokio::test(start_paused = true)]
async fn a_full_bulkhead_is_not_ready_and_refuses_nobody() {
    let layer = plain(sized(2, 0).back_pressure());
    let service = layer.layer(slow(millis(500)));
    let mut services = vec![service; 4];
    let is_ready: Vec<_> = services.iter_mut().map(poll_ready).collect();
    assert_eq!(is_ready, [true, true, false, false]);
    let handle = layer.handle();
    assert_eq!((handle.in_flight(), handle.queued()), (2, 2));

    let mut waiting = services.split_off(2);
    for mut service in services {
        assert_eq!(service.call(1).await.unwrap(), 7);
    }
    for service in &mut waiting {
        ready(service).await.unwrap();
        assert_eq!(service.call(1).await.unwrap(), 7);
    }
    assert_eq!(handle.in_flight(), 0);
}

/// Rows T9 and T10.
#[tokio::test(start_paused = true)]
async fn a_clone_is_not_ready_and_a_drop_gives_the_place_to_the_next() {
    let layer = plain(sized(1, 0).back_pressure());
    let mut first = layer.layer(slow(millis(5)));
    assert!(poll_ready(&mut first));
    let (mut second, mut third) = (first.clone(), first.clone());
    assert!(!poll_ready(&mut second) && !poll_ready(&mut third));
    drop(first);
    assert_eq!(layer.handle().in_flight(), 1, "handed over");
    assert!(!poll_ready(&mut third) && poll_ready(&mut second));
    drop(second);
    assert!(poll_ready(&mut third));
    drop(third);
    assert_eq!(
        (layer.handle().in_flight(), layer.handle().queued()),
        (0, 0)
    );
}

#[tokio::test(start_paused = true)]
async fn the_inner_services_readiness_is_waited_for_and_its_error_gives_the_place_back() {
    let door = Door::closed();
    let layer = plain(sized(1, 0).back_pressure());
    let mut service = layer.layer(door.before(Peer::new([Step::answer(7)])));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(service.poll_ready(&mut cx).is_pending());
    assert_eq!(layer.handle().in_flight(), 1);
    door.open();
    ready(&mut service).await.unwrap();
    assert_eq!(service.call(1).await.unwrap(), 7);
    door.fail("torn down");
    assert_eq!(
        ready(&mut service).await.unwrap_err().to_string(),
        "torn down"
    );
    assert_eq!(layer.handle().in_flight(), 0);
}
