//! How long a place is kept, and how it comes back.

use http::Response;
use http_body_util::BodyExt;
use mamparo_core::{BoxError, Classify, Plain, Verdict};
use mamparo_testkit::body::{Frames, ScriptedBody};
use mamparo_testkit::service::{Door, Script, Step};
use tower::{Layer, Service, ServiceExt};

use super::super::*;
use super::cast::*;

fn streaming() -> Response<ScriptedBody> {
    Response::new(ScriptedBody::new(Frames::new().data("a").data("b")))
}

/// Row P-C11: not at the head.
#[tokio::test(start_paused = true)]
async fn a_place_is_kept_until_the_body_has_ended() {
    let layer = http(sized(1, 0));
    let service = layer.layer(Script::new([Step::answer(streaming())]));
    let answer = service.oneshot(get()).await.unwrap();
    assert_eq!(layer.handle().in_flight(), 1);
    let mut body = answer.into_body();
    body.frame().await.unwrap().unwrap();
    assert_eq!(layer.handle().in_flight(), 1);
    while body.frame().await.is_some() {}
    assert_eq!(
        layer.handle().in_flight(),
        0,
        "and not only when it is dropped"
    );
    drop(body);
    assert_eq!(layer.handle().in_flight(), 0);
}

/// Row P-C11: or is dropped, or breaks.
#[tokio::test(start_paused = true)]
async fn a_body_that_is_dropped_or_breaks_gives_the_place_back() {
    let layer = http(sized(1, 0));
    let broken = Response::new(ScriptedBody::new(Frames::new().data("a").error("reset")));
    let steps = [Step::answer(streaming()), Step::answer(broken)];
    let service = layer.layer(Script::new(steps));
    let answer = service.clone().oneshot(get()).await.unwrap();
    assert_eq!(layer.handle().in_flight(), 1);
    drop(answer);
    assert_eq!(layer.handle().in_flight(), 0);
    let answer = service.oneshot(get()).await.unwrap();
    let mut body = answer.into_body();
    body.frame().await.unwrap().unwrap();
    body.frame().await.unwrap().unwrap_err();
    assert_eq!(layer.handle().in_flight(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_place_is_kept_until_the_head_when_told_so_or_when_nothing_follows() {
    let layer = http(sized(1, 0).hold(Hold::UntilHead));
    let service = layer.layer(Script::new([Step::answer(streaming())]));
    let answer = service.oneshot(get()).await.unwrap();
    assert_eq!(layer.handle().in_flight(), 0);
    assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "ab");

    let layer = http(sized(1, 0));
    let empty = Response::new(ScriptedBody::empty());
    let service = layer.layer(Script::new([Step::answer(empty)]));
    let _answer = service.oneshot(get()).await.unwrap();
    assert_eq!(layer.handle().in_flight(), 0);
}

/// Row E6: completing and cancelling what is complete gives one place back, not two.
#[tokio::test(start_paused = true)]
async fn a_place_comes_back_once_however_a_call_ends() {
    let layer = plain(sized(2, 0));
    let steps = [Step::answer(7), Step::error("down")];
    let service = layer.layer(Peer::new(steps).otherwise(Step::hang));
    let mut holder = called(&service);
    assert!(poll(&mut holder).is_ready());
    drop(holder);
    let mut failing = called(&service);
    assert!(poll(&mut failing).is_ready());
    assert_eq!(layer.handle().in_flight(), 0);
    let mut calls: Vec<_> = (0..3).map(|_| called(&service)).collect();
    let pending = calls
        .iter_mut()
        .map(poll)
        .filter(std::task::Poll::is_pending);
    assert_eq!(pending.count(), 2, "two are admitted, not three");
}

/// Row E7: a panic in the inner service, in a classifier, and before there is a future.
#[tokio::test(start_paused = true)]
async fn a_panic_frees_everything() {
    let layer = plain(sized(1, 0));
    let service = layer.layer(Peer::new([Step::panic()]));
    assert!(
        tokio::spawn(service.oneshot(1))
            .await
            .unwrap_err()
            .is_panic()
    );
    assert_eq!(layer.handle().in_flight(), 0);

    let judge = |_: Result<&u32, &BoxError>, _: Verdict| -> Verdict { panic!("a classifier") };
    let classifier = Classify::<u32>::refine(Plain::idempotent(), judge);
    let layer = BulkheadLayer::new(sized(1, 0).build().unwrap(), classifier);
    let service = layer.layer(Peer::new([Step::answer(7)]));
    assert!(
        tokio::spawn(service.oneshot(1))
            .await
            .unwrap_err()
            .is_panic()
    );
    assert_eq!(layer.handle().in_flight(), 0);

    let service = tower::service_fn(|_: u32| -> std::future::Ready<Result<u32, BoxError>> {
        panic!("while it is called")
    });
    let layer = plain(sized(1, 0));
    let mut service = layer.layer(service);
    let call = tokio::spawn(async move { service.ready().await.unwrap().call(1).await });
    assert!(call.await.unwrap_err().is_panic());
    assert_eq!(layer.handle().in_flight(), 0);
}

/// Law 2: the wait for the inner service holds a place, and counts against the deadline.
#[tokio::test(start_paused = true)]
async fn a_call_whose_inner_service_is_not_ready_waits_in_its_place() {
    let door = Door::closed();
    let layer = plain(sized(1, 0));
    let service = layer.layer(door.before(slow(millis(1))));
    let call = tokio::spawn(service.oneshot(1));
    tokio::time::sleep(millis(5)).await;
    assert_eq!(layer.handle().in_flight(), 1);
    door.open();
    assert_eq!(call.await.unwrap().unwrap(), 7);
    assert_eq!(layer.handle().in_flight(), 0);
}

/// Row P-C10: services made by one layer share its places.
#[tokio::test(start_paused = true)]
async fn all_services_of_a_layer_share_its_places() {
    let layer = plain(sized(1, 0));
    let (one, other) = (layer.layer(hanging()), layer.clone().layer(hanging()));
    let _holder = spawned(&one).await;
    assert!(other.oneshot(1).await.is_err());
}
