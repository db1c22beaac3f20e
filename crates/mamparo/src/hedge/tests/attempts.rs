//! Which attempts are made, when, and what the caller gets.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use http::{Method, StatusCode};
use http_body_util::BodyExt;
use mamparo_core::{
    BoxError, CallContext, Cause, Kind, NotResent, Plain, Reason, Rejection, Resend,
    TransportError, clock,
};
use mamparo_testkit::body::{Frames, ScriptedBody};
use mamparo_testkit::service::{Door, Script, Step, Strict};
use tower::{Layer, Service, ServiceExt, service_fn};

use super::cast::*;
use crate::hedge::{Ending, HedgeLayer, Nested, RetryError};
use crate::replay::ATTEMPT_HEADER;
use crate::retry::{RetryLayer, RetryPolicy};

async fn send(peer: &Peer) -> Result<Answer, BoxError> {
    hedge().layer(peer.clone()).oneshot(get()).await
}

async fn send_up_to(attempts: u32, peer: &Peer) -> Result<Answer, BoxError> {
    let policy = policy().max_attempts(attempts).build().unwrap();
    HedgeLayer::http(policy)
        .layer(peer.clone())
        .oneshot(get())
        .await
}

#[tokio::test(start_paused = true)]
async fn a_fast_answer_is_returned_as_it_is() {
    let peer = peer([after(99, 200)]);
    let answer = send(&peer).await.unwrap();
    assert_eq!(peer.started(), 1);
    assert!(answer.extensions().is_empty());
}

/// HG-V1: each hedge a delay after the one before, up to as many as are allowed.
#[tokio::test(start_paused = true)]
async fn hedges_are_sent_a_delay_apart() {
    let peer = peer((0..4).map(|_| after(10_000, 200)));
    let answer = send_up_to(4, &peer).await.unwrap();
    assert_eq!(sends(&peer), [0, 100, 200, 300]);
    assert_eq!(Ending::of(&answer).unwrap().attempts(), 4);
}

/// A6: without a delay all are sent at once.
#[tokio::test(start_paused = true)]
async fn without_a_delay_all_attempts_are_sent_at_once() {
    let policy = policy()
        .fixed(Duration::ZERO)
        .max_attempts(3)
        .build()
        .unwrap();
    let peer = peer((0..3).map(|_| after(50, 200)));
    HedgeLayer::http(policy)
        .layer(peer.clone())
        .oneshot(get())
        .await
        .unwrap();
    assert_eq!(sends(&peer), [0, 0, 0]);
}

/// HG-V2 and P-D5: the next one follows at once, and the later ones the delay after it.
#[tokio::test(start_paused = true)]
async fn a_failure_brings_the_next_attempt_forward() {
    let peer = peer([after(50, 503), after(10_000, 200), after(1, 200)]);
    send_up_to(4, &peer).await.unwrap();
    assert_eq!(sends(&peer), [0, 50, 150]);
}

/// HG-V3 and P-D5: what no attempt would do better is returned at once, and the others are given up.
#[tokio::test(start_paused = true)]
async fn a_fatal_answer_ends_the_operation() {
    let peer = peer([after(150, 404), after(10_000, 200)]);
    let start = clock::now();
    let answer = send(&peer).await.unwrap();
    assert_eq!(
        (answer.status(), start.elapsed()),
        (StatusCode::NOT_FOUND, 150 * MS)
    );
    assert_eq!((peer.started(), peer.running(), peer.dropped()), (2, 0, 1));
}

/// HG-V4 and rows G4, P-D2: the loser is given up within the poll in which the winner is heard of, and is no failure.
#[tokio::test(start_paused = true)]
async fn the_first_success_wins_and_the_loser_is_dropped_at_once() {
    let heard = Heard::default();
    let layer = hedge().observer(Arc::new(heard.clone()));
    let peer = peer([after(10_000, 200), after(20, 200)]);
    let start = clock::now();
    let answer = layer.layer(peer.clone()).oneshot(get()).await.unwrap();
    assert_eq!(
        (answer.status(), start.elapsed()),
        (StatusCode::OK, 120 * MS)
    );
    assert_eq!((peer.running(), peer.dropped()), (0, 1));
    let expected = [
        "sent 2 beside 1 after 100ms: slow",
        "2: success",
        "won by 2",
        "ended success after 2",
    ];
    assert_eq!(heard.all(), expected, "nothing is told of the loser");
    assert_eq!(Ending::of(&answer).unwrap().attempts(), 2);
}

/// Row G4, at the level of polls: the answer and the drop of the loser are one poll.
#[tokio::test(start_paused = true)]
async fn the_original_that_wins_drops_the_hedge_in_the_same_poll() {
    let peer = peer([after(150, 200), Step::hang()]);
    let mut service = hedge().layer(peer.clone());
    let mut call = pin!(service.ready().await.unwrap().call(get()));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(call.as_mut().poll(&mut cx).is_pending());
    tokio::time::advance(101 * MS).await;
    assert!(call.as_mut().poll(&mut cx).is_pending());
    assert_eq!(peer.running(), 2);
    tokio::time::advance(50 * MS).await;
    assert!(call.as_mut().poll(&mut cx).is_ready());
    assert_eq!(peer.running(), 0);
}

/// The same the other way round: the hedge wins, and the original is gone when that is heard of.
#[tokio::test(start_paused = true)]
async fn the_hedge_that_wins_drops_the_original_in_the_same_poll() {
    let peer = peer([Step::hang(), after(50, 200)]);
    let mut service = hedge().layer(peer.clone());
    let mut call = pin!(service.ready().await.unwrap().call(get()));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(call.as_mut().poll(&mut cx).is_pending());
    tokio::time::advance(101 * MS).await;
    assert!(call.as_mut().poll(&mut cx).is_pending());
    tokio::time::advance(51 * MS).await;
    assert!(call.as_mut().poll(&mut cx).is_ready());
    assert_eq!((peer.started(), peer.running()), (2, 0));
}

/// A second internal error is no accident.
#[tokio::test(start_paused = true)]
async fn an_internal_error_brings_the_next_attempt_forward_once() {
    let peer = peer([after(0, 500), after(0, 500), after(0, 200)]);
    let answer = send_up_to(3, &peer).await.unwrap();
    assert_eq!((peer.started(), answer.status().as_u16()), (2, 500));
    let ending = Ending::of(&answer).unwrap();
    assert_eq!(ending.not_resent(), Some(NotResent::OnceOnly));
}

/// Proof that the last of two sends was not processed says nothing of the first.
#[tokio::test(start_paused = true)]
async fn an_attempt_that_sent_twice_proves_nothing_by_its_last_send() {
    for (sends, in_doubt) in [(1, false), (2, true)] {
        let inside = service_fn(move |_: Wire| {
            for _ in 0..sends {
                CallContext::count_send("catalog".into());
            }
            let refused = TransportError::new(Kind::Connect, Resend::Always, "refused");
            std::future::ready(Err::<Answer, _>(refused))
        });
        let call = hedge().layer(inside).oneshot(request(Method::POST));
        let error = call.await.unwrap_err();
        let ending = RetryError::of(&*error).unwrap().ending();
        assert_eq!(ending.is_indeterminate(), in_doubt, "{sends} sends");
    }
}

/// A write that was doubled on request, and failed in one place: the other may have taken effect.
#[tokio::test(start_paused = true)]
async fn a_doubled_write_that_fails_is_in_doubt_while_the_other_runs() {
    let policy = policy().idempotent_only(false).build().unwrap();
    let peer = peer([Step::hang(), after(10, 400)]);
    let layer = HedgeLayer::http(policy);
    let answer = layer
        .layer(peer)
        .oneshot(request(Method::POST))
        .await
        .unwrap();
    assert_eq!(answer.status(), StatusCode::BAD_REQUEST);
    assert!(Ending::of(&answer).unwrap().is_indeterminate());
}

/// Row G5: the winner's stream has nothing to do with the losers.
#[tokio::test(start_paused = true)]
async fn a_slow_winners_body_is_read_to_its_end() {
    let frames = Frames::new().data("slow").wait(5_000 * MS).data("ly");
    let slow = http::Response::new(ScriptedBody::new(frames));
    let peer = peer([Step::answer(slow).after(110 * MS), Step::hang()]);
    let answer = send(&peer).await.unwrap();
    assert_eq!(
        answer.into_body().collect().await.unwrap().to_bytes(),
        "slowly"
    );
}

/// Row P-D1, and the peers' row "waits its delay after an instant failure; a 503 beats a 200".
#[tokio::test(start_paused = true)]
async fn a_failure_does_not_beat_a_hedge_that_succeeds() {
    for first in [after(0, 503), after(110, 503)] {
        let peer = peer([first, after(30, 200)]);
        let answer = send(&peer).await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK);
    }
}

/// Rows P-D1 and P-B12: a real answer is better than an error, whichever came last.
#[tokio::test(start_paused = true)]
async fn when_all_fail_the_last_real_answer_is_returned() {
    let reset = || TransportError::new(Kind::Reset, Resend::IfIdempotent, "reset");
    let error = Step::error(reset()).after(50 * MS);
    for (last, expected) in [(after(50, 502), 502), (error, 503)] {
        let peer = peer([after(120, 503), last]);
        let answer = send(&peer).await.unwrap();
        assert_eq!(answer.status().as_u16(), expected);
        let ending = *Ending::of(&answer).unwrap();
        assert_eq!(ending.attempts(), 2);
        assert_eq!(ending.not_resent(), Some(NotResent::AttemptsExhausted));
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(body, format!("body of {expected}"));
    }
}

#[tokio::test(start_paused = true)]
async fn when_all_fail_with_errors_the_error_says_how_many_there_were() {
    let reset = || TransportError::new(Kind::Reset, Resend::IfIdempotent, "reset");
    let peer = peer([Step::error(reset()), Step::error(reset())]);
    let error = send(&peer).await.unwrap_err();
    assert_eq!(error.to_string(), "catalog: failed after 2 attempts");
    assert_eq!(RetryError::of(&*error).unwrap().ending().attempts(), 2);
}

/// Row G7: a write is not doubled, and the reason is told.
#[tokio::test(start_paused = true)]
async fn a_request_that_is_not_idempotent_is_not_hedged_unless_told() {
    let heard = Heard::default();
    let layer = hedge().observer(Arc::new(heard.clone()));
    let slow = peer([after(500, 503)]);
    let call = layer.layer(slow.clone()).oneshot(request(Method::POST));
    let answer = call.await.unwrap();
    assert_eq!(slow.started(), 1);
    assert_eq!(heard.all()[0], "off: not_idempotent");
    let ending = Ending::of(&answer).unwrap();
    assert_eq!(ending.not_resent(), Some(NotResent::NotIdempotent));
    assert!(ending.is_indeterminate());

    let mut keyed = request(Method::POST);
    keyed
        .headers_mut()
        .insert("idempotency-key", "\"k\"".parse().unwrap());
    let slow = peer([after(500, 200), after(1, 200)]);
    hedge().layer(slow.clone()).oneshot(keyed).await.unwrap();
    assert_eq!(slow.started(), 2, "its key makes it idempotent");

    let policy = policy().idempotent_only(false).build().unwrap();
    let slow = peer([after(500, 200), after(1, 200)]);
    let told = HedgeLayer::http(policy).layer(slow.clone());
    told.oneshot(request(Method::POST)).await.unwrap();
    assert_eq!(slow.started(), 2);
}

/// RC-08: the server and everything inside see which attempt it is.
#[tokio::test(start_paused = true)]
async fn a_hedge_carries_its_number_and_the_original_none() {
    let peer = peer([after(500, 200), after(500, 200), after(1, 200)]);
    send_up_to(3, &peer).await.unwrap();
    let seen: Vec<_> = peer.requests();
    let headers: Vec<_> = seen
        .iter()
        .map(|(h, ..)| h.get(ATTEMPT_HEADER).cloned())
        .collect();
    assert_eq!(
        headers,
        [None, Some("2".parse().unwrap()), Some("3".parse().unwrap())]
    );
    let attempts: Vec<_> = seen
        .iter()
        .map(|(_, attempt, cause)| (*attempt, *cause))
        .collect();
    assert_eq!(
        attempts,
        [(1, Cause::Original), (2, Cause::Hedge), (3, Cause::Hedge)]
    );
}

/// P-D5, A6: no new ones, and those under way run on.
#[tokio::test(start_paused = true)]
async fn a_peer_that_forbids_resends_stops_the_hedging_but_not_what_runs() {
    let forbids = with(503, "x-mamparo-retry", "exhausted");
    let peer = peer([after(300, 200), Step::answer(forbids).after(20 * MS)]);
    let answer = send_up_to(4, &peer).await.unwrap();
    assert_eq!(
        (answer.status(), sends(&peer)),
        (StatusCode::OK, vec![0, 100])
    );
}

/// P-D5, A6: the next attempt when the server says, and the later ones the delay after it.
#[tokio::test(start_paused = true)]
async fn a_server_that_asks_for_a_wait_gets_the_next_attempt_after_it() {
    let busy = with(503, "retry-after", "2");
    let watch = busy.body().watch();
    let peer = peer([
        Step::answer(busy).after(50 * MS),
        after(10_000, 200),
        after(1, 200),
    ]);
    let policy = policy().max_attempts(3).build().unwrap();
    let mut call = pin!(HedgeLayer::http(policy).layer(peer.clone()).oneshot(get()));
    let early = tokio::time::timeout(1000 * MS, call.as_mut()).await;
    assert!(
        early.is_err() && watch.is_dropped(),
        "law 8: dropped before the wait"
    );
    call.await.unwrap();
    assert_eq!(sends(&peer), [0, 2050, 2150]);
}

#[tokio::test(start_paused = true)]
async fn a_wait_longer_than_is_accepted_returns_the_answer_at_once() {
    let peer = peer([Step::answer(with(503, "retry-after", "60"))]);
    let start = clock::now();
    let answer = send(&peer).await.unwrap();
    assert_eq!(start.elapsed(), Duration::ZERO);
    let ending = Ending::of(&answer).unwrap();
    assert_eq!(ending.not_resent(), Some(NotResent::HintTooLong));
}

/// Law 7.
#[tokio::test(start_paused = true)]
async fn no_hedge_is_begun_that_does_not_fit_before_the_deadline() {
    let heard = Heard::default();
    let layer = hedge().observer(Arc::new(heard.clone()));
    let peer = peer([after(105, 200)]);
    let call = layer.layer(peer.clone()).oneshot(get());
    within(109 * MS, call).await.unwrap();
    assert_eq!(peer.started(), 1);
    assert_eq!(heard.all()[0], "off: deadline_too_close");
}

/// IK: the first is still running at the server, and a third would only hear the same.
#[tokio::test(start_paused = true)]
async fn a_conflict_with_an_attempt_under_way_does_not_end_it() {
    let peer = peer([after(400, 200), after(10, 409), after(10, 409)]);
    let mut keyed = request(Method::POST);
    keyed
        .headers_mut()
        .insert("idempotency-key", "\"k\"".parse().unwrap());
    let policy = policy().max_attempts(3).build().unwrap();
    let layer = HedgeLayer::http(policy);
    let answer = layer.layer(peer.clone()).oneshot(keyed).await.unwrap();
    assert_eq!(
        (answer.status(), sends(&peer)),
        (StatusCode::OK, vec![0, 100, 200])
    );
}

/// Rows T1 and T2: each attempt on an instance of its own that was polled ready, and no slot is held through the delay.
#[tokio::test(start_paused = true)]
async fn every_attempt_is_ready_first_and_no_slot_is_held_through_the_delay() {
    let script = Script::<u32, u32>::new([Step::hang(), Step::answer(7).after(50 * MS)]);
    let strict = Strict::new(script.clone());
    let policy = policy().build().unwrap();
    let layer = HedgeLayer::new(policy, Plain::idempotent());
    let call = tokio::spawn(layer.layer(strict.clone()).oneshot(1));
    tokio::time::sleep(90 * MS).await;
    assert_eq!((script.started(), strict.ready_slots()), (1, 0));
    assert_eq!(call.await.unwrap().unwrap(), 7);
    assert_eq!(strict.ready_slots(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_hedge_that_gets_no_slot_does_not_hold_the_original_up() {
    let script = Script::<u32, u32>::new([Step::answer(7).after(300 * MS)]);
    let layer = HedgeLayer::new(policy().build().unwrap(), Plain::idempotent());
    let one_slot = Strict::with_slots(script.clone(), 1);
    assert_eq!(layer.layer(one_slot).oneshot(1).await.unwrap(), 7);
    assert_eq!(script.started(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_hedge_that_is_never_ready_leaves_the_original_alone() {
    let door = Door::opened();
    let script = Script::<u32, u32>::new([Step::answer(7).after(300 * MS)]);
    let layer = HedgeLayer::new(policy().build().unwrap(), Plain::idempotent());
    let call = tokio::spawn(layer.layer(door.before(script.clone())).oneshot(1));
    tokio::time::sleep(50 * MS).await;
    door.fail("gone");
    assert_eq!(call.await.unwrap().unwrap(), 7);
    assert_eq!(script.started(), 1);
}

/// Law 6: what was refused on our side says nothing about the original, which runs on.
#[tokio::test(start_paused = true)]
async fn a_hedge_that_is_refused_on_our_side_leaves_the_original_alone() {
    let refused = Rejection::refused(Reason::AttemptTimedOut, "catalog".into());
    let peer = peer([after(300, 200), Step::error(refused)]);
    let answer = send_up_to(5, &peer).await.unwrap();
    assert_eq!((answer.status(), peer.started()), (StatusCode::OK, 2));
}

#[tokio::test(start_paused = true)]
async fn an_original_that_is_refused_on_our_side_is_not_hedged() {
    let refused = Rejection::refused(Reason::AttemptTimedOut, "catalog".into());
    let peer = peer([Step::error(refused)]);
    let error = send(&peer).await.unwrap_err();
    assert!(error.downcast_ref::<Rejection>().is_some(), "as it is");
}

/// Law 8: the head of the answer that gave way is in the refusal.
#[tokio::test(start_paused = true)]
async fn a_refused_resend_carries_the_answer_that_was_given_up_for_it() {
    let refused = Rejection::refused(Reason::AttemptTimedOut, "catalog".into());
    let busy = with(503, "retry-after", "1");
    let peer = peer([Step::answer(busy), Step::error(refused)]);
    let error = send(&peer).await.unwrap_err();
    let head = Rejection::of(&*error).unwrap().last_response().unwrap();
    assert_eq!(head.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(RetryError::of(&*error).unwrap().ending().attempts(), 1);
}

/// The one owner of resends: inside a retry the hedge sends once, and the other way round.
#[tokio::test(start_paused = true)]
async fn a_hedge_inside_a_retry_leaves_the_resends_to_it() {
    let retry = || RetryLayer::new(RetryPolicy::default(), Plain::idempotent());
    let own = |nested| {
        let policy = policy().nested(nested).build().unwrap();
        HedgeLayer::new(policy, Plain::idempotent())
    };
    let down = || Script::<u32, u32>::new([]).otherwise(|| Step::error("down"));
    let peer = down();
    let stack = (retry(), own(Nested::Inherit)).layer(peer.clone());
    assert!(stack.oneshot(1).await.is_err());
    assert_eq!(peer.started(), 3, "the retry's three");
    let peer = down();
    let stack = (own(Nested::Inherit), retry()).layer(peer.clone());
    assert!(stack.oneshot(1).await.is_err());
    assert_eq!(peer.started(), 2, "the hedge's two");
    let peer = down();
    let stack = (retry(), own(Nested::Multiply)).layer(peer.clone());
    assert!(stack.oneshot(1).await.is_err());
    assert_eq!(peer.started(), 6);
    let peer = down();
    let stack = (own(Nested::Single), own(Nested::Multiply)).layer(peer.clone());
    assert!(stack.oneshot(1).await.is_err());
    assert_eq!(peer.started(), 2, "the inner hedge has resent");
}

/// Row A7: whatever panics, nothing runs on.
#[tokio::test(start_paused = true)]
async fn a_panic_of_one_attempt_stops_the_others() {
    let script = Script::<u32, u32>::new([Step::hang(), Step::panic()]);
    let layer = HedgeLayer::new(policy().build().unwrap(), Plain::idempotent());
    let call = tokio::spawn(layer.layer(script.clone()).oneshot(1));
    assert!(call.await.unwrap_err().is_panic());
    assert_eq!(script.running(), 0);
}

#[test]
fn a_setting_that_makes_no_sense_is_named() {
    let refused = |policy: crate::hedge::HedgeBuilder| policy.build().unwrap_err().setting();
    assert_eq!(refused(policy().max_attempts(0)), "max_attempts");
    assert_eq!(refused(policy().max_attempts(11)), "max_attempts");
    for share in [0.0, 1.0, f64::NAN] {
        assert_eq!(refused(policy().percentile(share)), "percentile");
    }
    for share in [0.0, 1.1, f64::NAN] {
        assert_eq!(refused(policy().max_extra_load(share)), "max_extra_load");
    }
    assert_eq!(refused(policy().min_samples(0)), "min_samples");
    assert_eq!(refused(policy().window(Duration::ZERO)), "window");
    assert_eq!(
        refused(policy().min_attempt_time(Duration::ZERO)),
        "min_attempt_time"
    );
}
