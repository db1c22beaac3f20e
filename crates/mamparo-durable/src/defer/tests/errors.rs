use std::error::Error as _;
use std::time::Duration;

use http::Request;
use mamparo_core::{BoxError, CallContext, Deadline, Dependency, Reason, Rejection, carry, clock};
use mamparo_testkit::body::{Frames, ScriptedBody};

use super::support::{Desk, answer, cancelled, charge, keyed, payment};
use crate::backend::Trouble;
use crate::defer::{DeferError, MAX_HEAD_BYTES, STORE_WITHIN, Undeferred};

async fn refused(desk: &Desk, request: Request<ScriptedBody>) -> (Undeferred, String) {
    let error = desk.call(request).await.unwrap_err();
    let found = DeferError::of(&*error).expect("a typed error");
    assert!(!found.sent() && found.answer().is_none() && found.id().is_none());
    (found.why(), found.to_string())
}

fn with(frames: Frames) -> Request<ScriptedBody> {
    charge().map(|_| ScriptedBody::new(frames).without_hints())
}

/// It must come out at once, and not in the hour of an outage.
#[tokio::test(start_paused = true)]
async fn what_could_not_be_stored_is_refused_before_it_is_sent() {
    let desk = Desk::new(payment().max_body(10), []);
    let long = Frames::new().data("01234").data("567890");
    let (why, says) = refused(&desk, with(long)).await;
    assert_eq!(why, Undeferred::TooLarge);
    assert_eq!(
        says,
        "the request can't be deferred, and is not sent: its body has more than 10 bytes"
    );
    let trailers = Frames::new().data("5").trailer("x-sum", "1");
    for (frames, word) in [
        (trailers, "trailers"),
        (Frames::new().error("gone"), "broke off"),
        (Frames::new().hang(), "took too long"),
    ] {
        let (why, says) = refused(&desk, with(frames)).await;
        assert_eq!(why, Undeferred::Unreplayable);
        assert!(says.contains(word), "{says}");
    }
    let mut long = charge();
    let value = "x".repeat(MAX_HEAD_BYTES).parse().unwrap();
    long.headers_mut().insert("prefer", value);
    assert_eq!(refused(&desk, long).await.0, Undeferred::TooLarge);
    for key in ["\u{e9}", &"k".repeat(300)] {
        let mut request = charge();
        let key = http::HeaderValue::from_bytes(key.as_bytes()).unwrap();
        request.headers_mut().insert("idempotency-key", key);
        assert_eq!(refused(&desk, request).await.0, Undeferred::UnusableKey);
    }
    assert!(desk.provider.sent().is_empty());
    // Exactly the bound.
    assert!(
        desk.call(with(Frames::new().data("0123456789")))
            .await
            .is_ok()
    );
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_can_not_be_stored_is_in_the_error() {
    let desk = Desk::new(payment(), [cancelled()]);
    desk.store_is_down();
    let error = desk.call(charge()).await.unwrap_err();
    let found = DeferError::of(&*error).unwrap();
    assert_eq!(
        (found.why(), found.trouble()),
        (Undeferred::NotStored, Some(Trouble::Unavailable))
    );
    assert!(found.sent() && found.id().is_some() && found.source().is_some());
    assert_eq!(
        found.to_string(),
        "the request could not be stored for later: it is ill (the answer was 200 OK)"
    );
    assert!(!format!("{found:?}").contains("CANCELLED"));
    let found = error.downcast::<DeferError>().unwrap();
    let answer = found.into_answer().unwrap();
    assert_eq!(
        (answer.status().as_u16(), &answer.body()[..]),
        (200, &br#"{"status":"CANCELLED"}"#[..])
    );
}

#[tokio::test(start_paused = true)]
async fn a_rejection_that_can_not_be_stored_is_found_as_ever() {
    let open = Rejection::refused(Reason::BreakerOpen, Dependency::named("psp"));
    let desk = Desk::new(
        payment().rejections(true),
        [Err::<_, BoxError>(open.into())],
    );
    desk.store_is_down();
    let error = desk.call(charge()).await.unwrap_err();
    assert_eq!(
        DeferError::of(&*error).unwrap().trouble(),
        Some(Trouble::Unavailable)
    );
    assert!(Rejection::of(&*error).is_some_and(Rejection::is_breaker_open));
}

#[tokio::test(start_paused = true)]
async fn a_store_that_does_not_answer_is_waited_for_no_longer_than_said() {
    let desk = Desk::new(payment(), [answer(409, "busy")]);
    desk.store_is_stuck();
    let began = clock::now();
    let error = desk.call(charge()).await.unwrap_err();
    let waited = clock::now() - began;
    assert!(
        waited >= STORE_WITHIN && waited < STORE_WITHIN * 2,
        "{waited:?}"
    );
    let found = DeferError::of(&*error).unwrap();
    assert_eq!(found.why(), Undeferred::StoreTooSlow);
    assert_eq!(found.answer().unwrap().body(), "busy");
}

/// Whoever is called within a deadline has no 15 s, but what failed for want of time is written down all the same.
#[tokio::test(start_paused = true)]
async fn neither_body_nor_store_is_waited_for_past_the_deadline() {
    for (request, left, waits) in [
        (with(Frames::new().hang()), 2_000, 2_000),
        (charge(), 2_000, 2_000),
        (charge(), 0, 1_000),
    ] {
        let desk = Desk::new(payment(), [cancelled()]);
        desk.store_is_stuck();
        let began = clock::now();
        let deadline = Deadline::after(began, Duration::from_millis(left));
        let mut context = CallContext::default().with_deadline(deadline);
        let call = context.enter(|| carry(desk.call(request)));
        assert!(call.await.is_err());
        let waited = (clock::now() - began).as_millis();
        assert!((waits..waits + 5).contains(&waited), "{waited}");
    }
}

#[tokio::test(start_paused = true)]
async fn another_request_under_a_known_key_is_not_sent() {
    let desk = Desk::new(payment(), [cancelled()]);
    assert!(desk.call(keyed("k")).await.unwrap().deferred().is_some());
    let other = keyed("k").map(|_| ScriptedBody::new("500 EUR"));
    let (why, says) = refused(&desk, other).await;
    assert_eq!(why, Undeferred::OtherRequest);
    assert!(says.starts_with("the request is not sent"), "{says}");
    assert_eq!(desk.provider.sent().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn another_request_under_the_same_key_is_not_taken_for_the_first() {
    let desk = Desk::new(payment(), [cancelled(), cancelled()]);
    // Both are sent before either is stored.
    desk.store_is_stuck();
    let other = keyed("k").map(|_| ScriptedBody::new("500 EUR"));
    let well = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        desk.store_is_well();
    };
    let (first, second, ()) = tokio::join!(desk.call(keyed("k")), desk.call(other), well);
    // Whichever is stored first.
    let (deferred, refused) = match first {
        Ok(_) => (first, second),
        Err(_) => (second, first),
    };
    assert!(deferred.unwrap().deferred().is_some());
    let error = refused.unwrap_err();
    let found = DeferError::of(&*error).unwrap();
    assert_eq!(found.why(), Undeferred::OtherRequest);
    assert!(found.sent() && found.answer().is_some());
    let id = crate::machine::TransactionId::new("psp:k").unwrap();
    assert_eq!(desk.engine.history(&id, 0, 10).await.unwrap().len(), 3);
}
