//! What a user's code may do to a breaker: observers that panic, followers that go away, streams that never end.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use http::{Request, Response};
use mamparo_core::breaker::BreakerCause;
use mamparo_core::{Event, Observer, Plain, What};
use mamparo_testkit::body::{Frames, ScriptedBody};
use mamparo_testkit::service::{Script, Step};
use tower::{Layer, Service, ServiceExt};

use super::cast::{Rig, SECOND, policy};
use crate::breaker::{BreakerLayer, BreakerState};

/// Panics at a change of a breaker's state to the one that it names.
#[derive(Debug)]
struct PanicsAt(BreakerState);

impl Observer for PanicsAt {
    fn on(&self, event: &Event<'_>) {
        if let What::BreakerTransition(change) = event.what {
            assert_ne!(change.to, Some(self.0), "an observer that panics");
        }
    }
}

/// Row A7, of callbacks: who panics as the first probe is let through takes no place along.
#[tokio::test(start_paused = true)]
async fn an_observer_that_panics_as_a_probe_passes_leaves_its_place_free() {
    let policy = policy().probes(1).successes_to_close(1).build().unwrap();
    let layer = BreakerLayer::new(policy, Plain::idempotent());
    let layer = layer.observer(Arc::new(PanicsAt(BreakerState::HalfOpen)));
    let peer = Script::<u32, u32>::new([Step::error("down")]).otherwise(|| Step::answer(7));
    let service = layer.layer(peer);
    service.clone().oneshot(1).await.unwrap_err();
    tokio::time::sleep(5 * SECOND).await;
    let panicked = tokio::spawn(service.clone().oneshot(1)).await;
    assert!(panicked.unwrap_err().is_panic());
    let read = layer.handle().snapshot();
    assert_eq!((read.state, read.probes), (BreakerState::HalfOpen, 0));
    assert_eq!(service.oneshot(1).await.unwrap(), 7);
    assert_eq!(layer.handle().state(), BreakerState::Closed);
}

/// A probe's end is heard before anybody is told of what follows from it.
#[tokio::test(start_paused = true)]
async fn an_observer_that_panics_as_a_probe_closes_it_leaves_it_closed() {
    let policy = policy().probes(1).successes_to_close(1).build().unwrap();
    let layer = BreakerLayer::new(policy, Plain::idempotent());
    let layer = layer.observer(Arc::new(PanicsAt(BreakerState::Closed)));
    let peer = Script::<u32, u32>::new([Step::error("down")]).otherwise(|| Step::answer(7));
    let service = layer.layer(peer);
    service.clone().oneshot(1).await.unwrap_err();
    tokio::time::sleep(5 * SECOND).await;
    assert!(tokio::spawn(service.clone().oneshot(1)).await.is_err());
    let read = layer.handle().snapshot();
    assert_eq!((read.state, read.probes), (BreakerState::Closed, 0));
    assert_eq!(service.oneshot(1).await.unwrap(), 7);
}

/// Counts how often it is woken.
#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Whoever has gone away is not woken, kept alive, or counted against the bound of those who wait.
#[test]
fn followers_that_go_away_leave_nothing_behind() {
    let layer = BreakerLayer::new(policy().build().unwrap(), Plain::idempotent());
    for _ in 0..2_000 {
        let gone = Arc::<Woken>::default();
        let waker = Waker::from(Arc::clone(&gone));
        let mut follower = layer.handle().transitions();
        for waker in [&Waker::noop().clone(), &waker] {
            assert!(
                follower
                    .poll_next(&mut Context::from_waker(waker))
                    .is_pending()
            );
        }
        drop((follower, waker));
        assert_eq!(Arc::strong_count(&gone), 1, "its waker is kept");
    }
    let woken = Arc::<Woken>::default();
    let waker = Waker::from(Arc::clone(&woken));
    let mut follower = layer.handle().transitions();
    assert!(
        follower
            .poll_next(&mut Context::from_waker(&waker))
            .is_pending()
    );
    assert_eq!(
        woken.0.load(Ordering::SeqCst),
        0,
        "it is asked again and again"
    );
    layer.handle().force_open();
    assert_eq!(woken.0.load(Ordering::SeqCst), 1);
    assert!(
        follower
            .poll_next(&mut Context::from_waker(&waker))
            .is_ready()
    );
}

fn streaming() -> Response<ScriptedBody> {
    Response::new(ScriptedBody::new(Frames::new().data("a").hang()).without_hints())
}

/// Row A5: where all answers are long streams, a breaker must be able to close.
#[tokio::test(start_paused = true)]
async fn probes_whose_answers_stream_for_longer_than_their_places_last_have_succeeded() {
    let layer = BreakerLayer::http(policy().build().unwrap());
    let down = Response::builder().status(503);
    let down = down.body(ScriptedBody::empty()).unwrap();
    let peer = Script::noting(|_: &Request<()>| (), [Step::answer(down)]);
    let service = layer.layer(peer.otherwise(|| Step::answer(streaming())));
    let mut follower = layer.handle().transitions();
    let call = || service.clone().oneshot(Request::new(()));
    call().await.unwrap();
    tokio::time::sleep(5 * SECOND).await;
    let streams = [call().await.unwrap(), call().await.unwrap()];
    tokio::time::sleep(29 * SECOND).await;
    let third = call().await.unwrap();
    assert_eq!(layer.handle().state(), BreakerState::HalfOpen);
    tokio::time::sleep(SECOND).await;
    call().await.unwrap();
    assert_eq!(layer.handle().state(), BreakerState::Closed);
    drop((streams, third));
    let read = layer.handle().snapshot();
    assert_eq!((read.late, read.state), (3, BreakerState::Closed));
    let causes = [
        follower.next().await,
        follower.next().await,
        follower.next().await,
    ];
    assert_eq!(causes[2].cause, BreakerCause::ProbesSucceeded);
}

/// Row A5: no head, no success.
#[tokio::test(start_paused = true)]
async fn probes_that_hang_without_an_answer_close_nothing() {
    let rig = Rig::new(policy().probes(2).successes_to_close(1));
    rig.opens_and_waits().await;
    for _ in 0..3 {
        let hung = [
            rig.starts(Step::hang()).await,
            rig.starts(Step::hang()).await,
        ];
        tokio::time::sleep(30 * SECOND).await;
        drop(hung);
    }
    assert_eq!(
        (rig.state(), rig.peer.started()),
        (BreakerState::HalfOpen, 7)
    );
}

/// Law 3: what a refused call leaves behind is not a slot of the inner service.
#[tokio::test(start_paused = true)]
async fn a_service_made_ready_while_closed_keeps_no_slot_once_its_call_is_refused() {
    let rig = Rig::new(policy());
    let inner = mamparo_testkit::service::Strict::with_slots(rig.peer.clone(), 1);
    let mut service = rig.layer.layer(inner.clone());
    poll_fn(|cx| Service::<u32>::poll_ready(&mut service, cx))
        .await
        .unwrap();
    assert_eq!(inner.ready_slots(), 1);
    rig.handle.force_open();
    let mut call = std::pin::pin!(service.call(1));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(matches!(call.as_mut().poll(&mut cx), Poll::Ready(Err(_))));
    assert_eq!(inner.ready_slots(), 0);
}
