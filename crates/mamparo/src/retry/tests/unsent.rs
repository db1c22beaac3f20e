//! What a retry knows of what was sent: proof and doubt, what it gives back and what it hands on.

use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use http::{Method, StatusCode};
use mamparo_core::budget::Budget;
use mamparo_core::{
    BoxError, CallContext, Classify, Kind, Plain, Reason, Rejection, Resend, TransportError,
    Verdict, clock,
};
use mamparo_testkit::service::{Door, Script, Step};
use tower::{Layer, ServiceExt};

use super::cast::*;
use crate::replay::ATTEMPT_HEADER;
use crate::retry::{Ending, RetryError, RetryLayer};

/// Law 8: also an error that is no rejection of ours still tells what the peer said last, and that nothing more was sent.
#[tokio::test(start_paused = true)]
async fn a_service_that_breaks_before_the_resend_ends_the_operation_and_keeps_the_last_responses_head()
 {
    let heard = Heard::default();
    let door = Door::opened();
    let budget = Budget::default();
    let policy = policy().budget(budget.clone()).build().unwrap();
    let layer = RetryLayer::http(policy).observer(Arc::new(heard.clone()));
    let peer = peer([Step::answer(with(503, "x-why", "busy"))]);
    let call = tokio::spawn(layer.layer(door.before(peer)).oneshot(request(Method::GET)));
    tokio::time::sleep(Duration::from_millis(50)).await;
    door.fail("gone");
    let error = call.await.unwrap().unwrap_err();
    let retry = RetryError::of(&*error).unwrap();
    assert_eq!(retry.ending().attempts(), 1);
    assert_eq!(retry.last_response().unwrap().headers["x-why"], "busy");
    assert_eq!(heard.all().last().unwrap(), "ended unavailable after 1");
    assert_eq!(budget.consumed(), 0);
}

/// Law 8: what failed in between was no response.
#[tokio::test(start_paused = true)]
async fn the_last_real_response_is_remembered_over_an_error_that_follows_it() {
    let reset = TransportError::new(Kind::Reset, Resend::IfIdempotent, "reset");
    let rejection = Rejection::refused(Reason::DeadlineExceeded, "catalog".into());
    let peer = peer([
        Step::answer(with(503, "x-why", "busy")),
        Step::error(reset),
        Step::error(rejection),
    ]);
    let error = send(&peer, request(Method::GET)).await.unwrap_err();
    let head = Rejection::of(&*error).unwrap().last_response().unwrap();
    assert_eq!(head.headers["x-why"], "busy");
}

/// RFC 8470 §5.2: a server answers 425 because it did not process the request.
#[tokio::test(start_paused = true)]
async fn an_unsafe_request_that_was_too_early_has_not_taken_effect() {
    let peer = statuses(&[425, 425]);
    let answer = send(&peer, request(Method::POST)).await.unwrap();
    assert_eq!(peer.started(), 2);
    assert!(!Ending::of(&answer).unwrap().is_indeterminate());
}

/// The table allows each of them one resend.
#[tokio::test(start_paused = true)]
async fn a_resend_after_too_early_does_not_use_up_that_of_an_internal_error() {
    let peer = statuses(&[425, 500, 200]);
    let answer = send(&peer, request(Method::GET)).await.unwrap();
    assert_eq!((peer.started(), answer.status().as_u16()), (3, 200));
}

#[tokio::test(start_paused = true)]
async fn the_longest_hint_does_not_overflow() {
    let endless = Classify::<u32>::refine(Plain::idempotent(), |_: Result<&u32, &BoxError>, _| {
        Verdict::failure(Kind::Throttled, Resend::Always).after(Duration::MAX)
    });
    let policy = policy().max_hint(Duration::MAX).build().unwrap();
    let layer = RetryLayer::new(policy, endless);
    let call = layer
        .layer(Script::<u32, u32>::new([Step::answer(1)]))
        .oneshot(1);
    let waits = tokio::time::timeout(Duration::from_secs(86_400), call).await;
    assert!(waits.is_err());
}

/// DH-09: the number that our own caller sent is not that of our request.
#[tokio::test(start_paused = true)]
async fn a_number_that_came_with_the_request_is_not_sent_on() {
    let peer = statuses(&[200]);
    let mut forwarded = request(Method::GET);
    forwarded
        .headers_mut()
        .insert(ATTEMPT_HEADER, "7".parse().unwrap());
    send(&peer, forwarded).await.unwrap();
    assert!(!peer.requests()[0].contains_key(ATTEMPT_HEADER));
}

#[tokio::test(start_paused = true)]
async fn a_request_with_as_many_headers_as_there_can_be_is_sent_again_without_a_number() {
    let peer = statuses(&[503, 200]);
    let mut full = request(Method::GET);
    for n in 0.. {
        let name = http::HeaderName::try_from(format!("x-{n}")).unwrap();
        if full
            .headers_mut()
            .try_insert(name, "1".parse().unwrap())
            .is_err()
        {
            break;
        }
    }
    assert_eq!(send(&peer, full).await.unwrap().status(), StatusCode::OK);
}

/// Row D8, P-A3: woken too late, as on a busy machine.
#[tokio::test(start_paused = true)]
async fn a_resend_whose_deadline_passed_meanwhile_is_not_sent_and_its_token_goes_back() {
    let budget = Budget::default();
    let policy = policy().budget(budget.clone()).build().unwrap();
    let peer = peer([Step::answer(with(503, "x-why", "busy"))]);
    let call = RetryLayer::http(policy)
        .layer(peer.clone())
        .oneshot(request(Method::GET));
    let mut call = std::pin::pin!(within(Duration::from_secs(1), call));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(call.as_mut().poll(&mut cx).is_pending());
    tokio::time::advance(Duration::from_secs(2)).await;
    let error = call.await.unwrap_err();
    let rejection = Rejection::of(&*error).unwrap();
    assert!(rejection.is_deadline_exceeded() && !rejection.sent());
    assert_eq!(rejection.last_response().unwrap().headers["x-why"], "busy");
    assert_eq!((peer.started(), budget.consumed()), (1, 0));
}

/// What was refused inside, such as by a limit of its own, was not sent.
#[tokio::test(start_paused = true)]
async fn a_resend_that_is_refused_locally_gives_its_token_back() {
    let budget = Budget::builder()
        .ratio(0.0)
        .min_per_second(1)
        .build()
        .unwrap();
    let policy = policy().budget(budget.clone()).build().unwrap();
    let rejection = Rejection::refused(Reason::AttemptTimedOut, "catalog".into());
    let peer = peer([Step::answer(answer(503)), Step::error(rejection)]);
    let call = RetryLayer::http(policy)
        .layer(peer)
        .oneshot(request(Method::GET));
    assert!(call.await.is_err());
    assert_eq!(budget.consumed(), 0);
    assert!(budget.withdraw(clock::now(), None, 0).is_ok());
}

#[tokio::test(start_paused = true)]
async fn an_error_says_why_it_was_not_sent_again() {
    let budget = Budget::builder()
        .ratio(0.0)
        .min_per_second(0)
        .build()
        .unwrap();
    let policy = policy().budget(budget).build().unwrap();
    let refused = TransportError::new(Kind::Connect, Resend::Always, "refused");
    let layer = RetryLayer::http(policy).dependency("catalog");
    let call = layer
        .layer(peer([Step::error(refused)]))
        .oneshot(request(Method::GET));
    assert_eq!(
        call.await.unwrap_err().to_string(),
        "catalog: failed after 1 attempt, and was not sent again: the budget for resends is spent"
    );
}

#[test]
fn an_attempt_that_needs_no_time_is_refused_when_the_policy_is_built() {
    let error = policy().min_attempt_time(Duration::ZERO).build();
    assert_eq!(error.unwrap_err().setting(), "min_attempt_time");
}

/// A middleware between the retry and the dependency may call another one, before or after: that no connection was made
/// there proves nothing here.
#[tokio::test(start_paused = true)]
async fn proof_of_another_dependency_is_no_reason_to_send_an_unsafe_request_again() {
    let refused = || {
        Step::error(TransportError::new(
            Kind::Connect,
            Resend::Always,
            "refused",
        ))
    };
    let ledger = retry()
        .dependency("ledger")
        .layer(peer([]).otherwise(refused));
    let psp = statuses(&[200, 200, 200]);
    let booked = tower::service_fn(|request: Wire| {
        let (psp, ledger) = (psp.clone(), ledger.clone());
        async move {
            let answer = psp.oneshot(request).await?;
            ledger.oneshot(self::request(Method::POST)).await?;
            Ok::<_, BoxError>(answer)
        }
    });
    let layer = retry().dependency("psp");
    let error = layer.layer(booked).oneshot(request(Method::POST)).await;
    let ending = RetryError::of(&*error.unwrap_err()).unwrap().ending();
    assert_eq!((psp.started(), ending.is_indeterminate()), (1, true));
}

/// A redirect that is followed between the retry and the transport: that its second hop was refused says nothing of its
/// first, which may have been answered 303 because the request took effect.
#[tokio::test(start_paused = true)]
async fn proof_about_the_last_of_several_sends_is_none_about_the_first() {
    let peer = peer([Step::answer(answer(200)), Step::answer(answer(200))]);
    let followed = tower::service_fn(|request: Wire| {
        let peer = peer.clone();
        async move {
            CallContext::count_send("catalog".into());
            peer.oneshot(request).await?;
            CallContext::count_send("catalog".into());
            let refused = TransportError::new(Kind::Connect, Resend::Always, "refused");
            Err::<Answer, BoxError>(refused.into())
        }
    });
    let error = retry().layer(followed).oneshot(request(Method::POST)).await;
    let ending = RetryError::of(&*error.unwrap_err()).unwrap().ending();
    assert_eq!((peer.started(), ending.is_indeterminate()), (1, true));
}
