use std::time::Duration;

use mamparo_core::{BoxError, Dependency, Ending, Reason, Rejection, RetryError, clock};
use mamparo_testkit::body::{Frames, ScriptedBody};

use super::support::{Desk, MINUTE, answer, cancelled, charge, keyed, payment};
use crate::defer::{DeferAs, DeferBuilder, DeferKeys, Deferred};
use crate::machine::{End, State, TransactionId};

async fn deferred(desk: &Desk, request: http::Request<ScriptedBody>) -> Deferred {
    let outcome = desk.call(request).await.unwrap();
    outcome.deferred().expect("a deferral").clone()
}

/// Each attempt after a refusal has a key of its own: under the old one the dependency would repeat its refusal.
#[tokio::test(start_paused = true)]
async fn a_refused_payment_is_stored_and_sent_again_until_it_is_made() {
    let desk = Desk::new(payment(), [cancelled(), answer(409, "")]);
    let began = clock::now();
    let deferred = deferred(&desk, charge()).await;
    assert_eq!(deferred.state, State::Scheduled);
    assert_eq!(deferred.reason.as_ref().unwrap().as_str(), "CANCELLED");
    let due = deferred.next_fire_at.unwrap();
    assert_eq!(due.since(desk.engine.runner().now()), MINUTE);
    assert_eq!(
        deferred.to_string(),
        format!("{} waits until {due}", deferred.id)
    );

    let over = desk.until_over(&deferred.id).await;
    assert_eq!(over.progress.state, State::Succeeded);
    assert_eq!(over.terms.kind.as_str(), "payment");
    assert_eq!(over.terms.dependency.as_ref().unwrap().as_str(), "psp");
    let id = &deferred.id;
    let keys = [1, 2, 3].map(|attempt| format!("\"{id}#{attempt}\""));
    assert_eq!(desk.provider.keys(), keys);
    for (number, sent) in (0..).zip(desk.provider.sent()) {
        let late = (sent.at - began).checked_sub(MINUTE * number);
        assert!(late.expect("never early") < Duration::from_millis(50));
        assert_eq!(sent.body, "5 EUR");
        assert_eq!(sent.headers["content-type"], "text/plain");
    }
}

#[tokio::test(start_paused = true)]
async fn a_retry_after_is_the_least_wait() {
    let asks = |seconds: u32| {
        answer(409, "").map(|mut answer| {
            answer.headers_mut().insert("retry-after", seconds.into());
            answer
        })
    };
    let desk = Desk::new(payment(), [asks(600), asks(10)]);
    let wait = |deferred: Deferred| {
        deferred
            .next_fire_at
            .unwrap()
            .since(desk.engine.runner().now())
    };
    let later = wait(deferred(&desk, charge()).await);
    assert!(later >= MINUTE * 10, "{later:?}");
    assert_eq!(wait(deferred(&desk, charge()).await), MINUTE);
}

/// Nothing was sent: no attempt is spent, and the original is sent under its own key when the breaker is closed again.
#[tokio::test(start_paused = true)]
async fn what_an_open_breaker_refuses_is_deferred_where_the_policy_says_so() {
    let open = || {
        let open = Rejection::refused(Reason::BreakerOpen, Dependency::named("psp"));
        Err::<_, BoxError>(open.with_retry_after(MINUTE * 5).into())
    };
    let desk = Desk::new(payment(), [open()]);
    let error = desk.call(charge()).await.unwrap_err();
    assert!(Rejection::of(&*error).is_some_and(Rejection::is_breaker_open));

    let desk = Desk::new(payment().rejections(true), [open()]);
    let deferred = deferred(&desk, keyed("\"order-7\"")).await;
    assert_eq!(deferred.id.as_str(), "psp:order-7");
    assert_eq!(deferred.reason.as_ref().unwrap().as_str(), "breaker_open");
    assert!(
        deferred
            .next_fire_at
            .unwrap()
            .since(desk.engine.runner().now())
            >= MINUTE * 5
    );
    let over = desk.until_over(&deferred.id).await;
    assert_eq!(
        (over.progress.attempt_current, over.progress.postponements),
        (1, 1)
    );
    assert_eq!(desk.provider.keys(), ["\"order-7\"", "\"order-7\""]);
}

#[tokio::test(start_paused = true)]
async fn what_will_never_pass_is_not_deferred() {
    let burst = Rejection::refused(Reason::AboveBurst, Dependency::named("psp"));
    let desk = Desk::new(
        payment().rejections(true).failures(true),
        [Err(burst.into()), Err("?".into())],
    );
    assert!(desk.call(charge()).await.is_err());
    assert_eq!(desk.call(charge()).await.unwrap_err().to_string(), "?");
}

/// Nobody knows whether the dependency acted, so the same attempt goes out again under the very key that it had.
#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_sent_again_under_the_same_key() {
    let cut = || {
        let cut = Rejection::cut(Reason::AttemptTimedOut, Dependency::named("psp"));
        Err::<_, BoxError>(cut.into())
    };
    let script = [cut(), answer(503, ""), cancelled()];
    let desk = Desk::new(payment().failures(true), script);
    let deferred = deferred(&desk, charge()).await;
    assert_eq!(
        desk.stored(&deferred.id).await.progress.attempt_next,
        Some(1)
    );
    let over = desk.until_over(&deferred.id).await;
    assert_eq!(
        (over.progress.attempt_current, over.progress.postponements),
        (2, 2)
    );
    let id = &deferred.id;
    let keys = [1, 1, 1, 2].map(|attempt| format!("\"{id}#{attempt}\""));
    assert_eq!(desk.provider.keys(), keys);
}

#[tokio::test(start_paused = true)]
async fn a_failure_of_a_request_that_can_not_be_repeated_is_its_callers() {
    let policy = || payment().failures(true).keys(DeferKeys::Callers);
    let desk = Desk::new(policy(), [answer(503, ""), answer(503, "")]);
    assert!(desk.call(charge()).await.unwrap().answered().is_some());
    assert_eq!(desk.provider.keys(), [""; 0]);
    let mut put = charge();
    *put.method_mut() = http::Method::PUT;
    deferred(&desk, put).await;
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_breaks_off_is_a_failure_and_not_a_success() {
    let broken = || {
        let frames = Frames::new().data(r#"{"status":"#).error("reset");
        Ok(http::Response::new(ScriptedBody::new(frames)))
    };
    let desk = Desk::new(payment().failures(true), [broken()]);
    let deferred = deferred(&desk, charge()).await;
    assert_eq!(
        deferred.reason.as_ref().unwrap().as_str(),
        "the answer broke off"
    );
    assert_eq!(
        desk.until_over(&deferred.id).await.progress.end,
        Some(End::Answered)
    );
}

/// A caller that repeats its request finds the same transaction, however far that has gone; sent, it would be one payment more.
#[tokio::test(start_paused = true)]
async fn a_repeated_request_is_the_same_transaction_and_is_not_sent() {
    let desk = Desk::new(payment(), [cancelled()]);
    let first = deferred(&desk, keyed("order-7")).await;
    assert_eq!(deferred(&desk, keyed("order-7")).await, first);
    assert_eq!(desk.provider.sent().len(), 1);
    desk.until_over(&first.id).await;
    let again = deferred(&desk, keyed("order-7")).await;
    assert_eq!(desk.provider.keys(), ["order-7", "psp:order-7#2"]);
    assert_eq!((again.state, again.next_fire_at), (State::Succeeded, None));
    assert_eq!(again.to_string(), "psp:order-7 is SUCCEEDED");
}

/// A caller may have been updated, or speak another language, between one try and the next.
#[tokio::test(start_paused = true)]
async fn a_repeated_request_with_other_headers_is_the_same_transaction() {
    let desk = Desk::new(payment(), [cancelled(), cancelled()]);
    let first = deferred(&desk, keyed("order-7")).await;
    let mut again = keyed("order-7");
    let headers = again.headers_mut();
    headers.insert("user-agent", "shop/2".parse().unwrap());
    headers.insert("accept-language", "es".parse().unwrap());
    assert_eq!(deferred(&desk, again).await, first);
}

/// The breaker opened after the first attempt was cut: a dependency without keys may have acted on that one.
#[tokio::test(start_paused = true)]
async fn a_rejection_of_a_resend_is_deferred_only_as_a_failure_is() {
    let script = || {
        let open = Rejection::refused(Reason::BreakerOpen, Dependency::named("psp"));
        // As a retry counts: only what was sent.
        let resent = Ending::new(1, None, true);
        let failed = RetryError::new(Dependency::named("psp"), resent, None, open.into());
        [Err::<_, BoxError>(failed.into())]
    };
    let desk = Desk::new(payment().rejections(true), script());
    assert!(desk.call(charge()).await.is_err());
    let unkeyed = payment().rejections(true).failures(true);
    let desk = Desk::new(unkeyed.keys(DeferKeys::Callers), script());
    assert!(desk.call(charge()).await.is_err());
    let desk = Desk::new(payment().failures(true), script());
    deferred(&desk, charge()).await;
}

#[tokio::test(start_paused = true)]
async fn a_request_says_as_what_it_is_deferred() {
    let desk = Desk::new(payment().keys(DeferKeys::Bare), [cancelled()]);
    let mut request = charge();
    let named = DeferAs::new()
        .id(TransactionId::new("refund-1").unwrap())
        .kind("refund")
        .customer("ACME")
        .trace("00-1-2-01");
    request.extensions_mut().insert(named);
    let deferred = deferred(&desk, request).await;
    let terms = desk.stored(&deferred.id).await.terms;
    assert_eq!(
        (terms.id.as_str(), terms.kind.as_str()),
        ("refund-1", "refund")
    );
    assert_eq!(terms.customer.as_ref().unwrap().as_str(), "ACME");
    assert_eq!(terms.trace.as_ref().unwrap().as_str(), "00-1-2-01");
    desk.until_over(&deferred.id).await;
    assert_eq!(desk.provider.keys(), ["refund-1#1", "refund-1#2"]);
}

/// An allow list, so that a secret of whatever name is not stored.
#[tokio::test(start_paused = true)]
async fn only_listed_headers_are_stored() {
    let policy: DeferBuilder = payment().headers(["x-shop".parse().unwrap()]);
    let desk = Desk::new(policy, [cancelled()]);
    let mut request = charge();
    for name in ["x-shop", "x-api-key", "authorization"] {
        request.headers_mut().insert(name, "1".parse().unwrap());
    }
    let deferred = deferred(&desk, request).await;
    desk.until_over(&deferred.id).await;
    let sent = desk.provider.sent();
    let has = |at: usize, name: &str| sent[at].headers.contains_key(name);
    assert!(has(0, "x-shop") && has(0, "x-api-key") && has(0, "authorization"));
    assert!(has(1, "x-shop") && !has(1, "x-api-key") && !has(1, "authorization"));
}

/// What the dependency said is written down although nobody waits for it any more.
#[tokio::test(start_paused = true)]
async fn a_caller_that_goes_away_while_it_is_stored_loses_nothing() {
    let desk = Desk::new(payment(), [cancelled()]);
    desk.store_is_stuck();
    let gone = tokio::time::timeout(Duration::from_secs(1), desk.call(keyed("k"))).await;
    assert!(gone.is_err());
    desk.store_is_well();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let id = TransactionId::new("psp:k").unwrap();
    assert_eq!(desk.stored(&id).await.progress.state, State::Scheduled);
}
