//! Calls that are shed because the dependency accepts too few.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use http::{Request, Response, StatusCode};
use mamparo_core::{Kind, Resend, Verdict, clock};
use mamparo_testkit::body::ScriptedBody;
use mamparo_testkit::service::{Script, Step};
use tower::{Layer, ServiceExt};

use super::super::state::accepted;
use super::super::*;
use super::cast::*;

const WINDOW: Duration = Duration::from_secs(10);

type Peer = Script<Request<()>, Response<ScriptedBody>, ()>;

fn answers(status: u16) -> Step<Response<ScriptedBody>> {
    let mut answer = Response::new(ScriptedBody::empty());
    *answer.status_mut() = StatusCode::from_u16(status).unwrap();
    Step::answer(answer)
}

fn peer(status: u16) -> Peer {
    Script::noting(|_| (), []).otherwise(move || answers(status))
}

/// How many of so many calls a peer gets to see.
async fn sent(peer: &Peer, layer: &LoadShedLayer<mamparo_core::http::Http>, calls: usize) -> usize {
    let before = peer.started();
    for _ in 0..calls {
        drop(layer.layer(peer.clone()).oneshot(Request::new(())).await);
        tokio::time::sleep(millis(1)).await;
    }
    peer.started() - before
}

fn throttle() -> LoadShedLayer<mamparo_core::http::Http> {
    fastrand::seed(7);
    LoadShedLayer::http(policy().throttle(2.0, WINDOW).build().unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_dependency_that_accepts_nothing_is_asked_seldom_and_found_again_when_it_works() {
    let (down, up) = (peer(503), peer(200));
    let layer = throttle();
    assert!(
        sent(&down, &layer, 2_000).await < 250,
        "one in twenty, and the first ones"
    );
    tokio::time::sleep(WINDOW + WINDOW / 10).await;
    // The window is over, and all is forgotten.
    assert_eq!(sent(&up, &layer, 500).await, 500);
}

#[tokio::test(start_paused = true)]
async fn a_dependency_that_accepts_half_of_all_is_sent_nearly_all() {
    let half: Peer = Script::noting(
        |_| (),
        (0..1_000).map(|call| answers(if call % 2 == 0 { 200 } else { 503 })),
    );
    assert!(sent(&half, &throttle(), 1_000).await > 900);
}

/// With a k of 2, it sees about as many calls that it rejects as calls that it accepts.
#[tokio::test(start_paused = true)]
async fn a_dependency_that_accepts_a_hundred_a_second_is_sent_about_two_hundred() {
    let (start, accepted) = (clock::now(), AtomicU32::new(0));
    let peer: Peer = Script::noting(|_| (), []).otherwise(move || {
        let due = start.elapsed().as_millis() / 10;
        let accepts = u128::from(accepted.load(Relaxed)) < due;
        accepted.fetch_add(u32::from(accepts), Relaxed);
        answers(if accepts { 200 } else { 429 })
    });
    let layer = throttle();
    sent(&peer, &layer, 10_000).await;
    let seen = sent(&peer, &layer, 10_000).await;
    assert!((1_400..2_600).contains(&seen), "{seen} of 10000");
}

#[tokio::test(start_paused = true)]
async fn what_the_dependency_worked_on_is_no_reason_to_shed() {
    for status in [200, 404, 500] {
        let (peer, layer) = (peer(status), throttle());
        assert_eq!(sent(&peer, &layer, 200).await, 200, "{status}");
    }
}

/// Law 6: a caller that goes away says nothing of the dependency.
#[tokio::test(start_paused = true)]
async fn a_call_that_is_cancelled_counts_as_nothing() {
    let peer: Peer = Script::noting(|_| (), []).otherwise(Step::hang);
    let layer = throttle();
    for _ in 0..200 {
        let call = layer.layer(peer.clone()).oneshot(Request::new(()));
        assert!(tokio::time::timeout(millis(1), call).await.is_err());
    }
    assert_eq!(peer.started(), 200);
}

#[test]
fn accepted_is_what_was_worked_on() {
    let failed = |kind| accepted(&Verdict::failure(kind, Resend::Never));
    assert_eq!(accepted(&Verdict::SUCCESS), Some(true));
    assert_eq!(accepted(&Verdict::IGNORED), None);
    for kind in [Kind::Server, Kind::Client] {
        assert_eq!(failed(kind), Some(true));
    }
    let unanswered = [
        Kind::Connect,
        Kind::Reset,
        Kind::Timeout,
        Kind::Throttled,
        Kind::Unavailable,
        Kind::Other,
    ];
    for kind in unanswered {
        assert_eq!(failed(kind), Some(false));
    }
}
