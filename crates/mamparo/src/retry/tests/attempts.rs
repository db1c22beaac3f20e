//! A retry as its caller sees it: scripted services, paused time.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Method, Request, StatusCode};
use mamparo_core::budget::Budget;
use mamparo_core::{
    InvalidSetting, Kind, NotResent, Plain, Reason, Rejection, Resend, TransportError, clock,
};
use mamparo_testkit::body::ScriptedBody;
use mamparo_testkit::service::{Script, Step, Strict, Tracked};
use tower::{Layer, Service, ServiceExt};

use super::cast::*;
use crate::replay::ATTEMPT_HEADER;
use crate::retry::config::MAX_ATTEMPTS;
use crate::retry::{Ending, Nested, RetryError, RetryLayer};

#[tokio::test(start_paused = true)]
async fn an_idempotent_request_is_sent_again_until_it_succeeds() {
    let peer = statuses(&[503, 503, 200]);
    let start = clock::now();
    let answer = send(&peer, request(Method::GET)).await.unwrap();
    assert_eq!((answer.status(), peer.started()), (StatusCode::OK, 3));
    assert_eq!(
        clock::now() - start,
        Duration::from_millis(300),
        "100 ms, then 200 ms"
    );
    let ending = Ending::of(&answer).unwrap();
    assert_eq!((ending.attempts(), ending.not_resent()), (3, None));
}

#[tokio::test(start_paused = true)]
async fn a_first_success_is_returned_as_it_is() {
    let peer = statuses(&[200]);
    let answer = send(&peer, request(Method::GET)).await.unwrap();
    assert!(Ending::of(&answer).is_none() && answer.extensions().is_empty());
}

/// Row C1, RM-03, RM-07: the write may have been applied.
#[tokio::test(start_paused = true)]
async fn an_unsafe_request_is_sent_once_and_marked_indeterminate() {
    let peer = statuses(&[503]);
    let answer = send(&peer, request(Method::POST)).await.unwrap();
    assert_eq!(
        (answer.status(), peer.started()),
        (StatusCode::SERVICE_UNAVAILABLE, 1)
    );
    let ending = Ending::of(&answer).unwrap();
    assert_eq!(ending.not_resent(), Some(NotResent::NotIdempotent));
    assert!(ending.is_indeterminate());
}

/// RM-08: a throttled request was not processed, so its outcome is known; it is still not sent again unasked.
#[tokio::test(start_paused = true)]
async fn an_unsafe_request_that_was_throttled_is_sent_once_and_not_indeterminate() {
    let peer = statuses(&[429]);
    let answer = send(&peer, request(Method::POST)).await.unwrap();
    assert_eq!(peer.started(), 1);
    assert!(!Ending::of(&answer).unwrap().is_indeterminate());
}

/// RM-04, P-B9.
#[tokio::test(start_paused = true)]
async fn a_keyed_request_is_sent_again_with_the_same_key() {
    let peer = statuses(&[503, 409, 200]);
    send(&peer, keyed(Method::POST)).await.unwrap();
    let keys: Vec<_> = peer
        .requests()
        .iter()
        .map(|h| h["idempotency-key"].clone())
        .collect();
    assert_eq!(keys, ["\"k\"", "\"k\"", "\"k\""]);
}

/// RM-11: without a key, a conflict is the request's own fault.
#[tokio::test(start_paused = true)]
async fn a_conflict_without_a_key_is_not_sent_again() {
    let peer = statuses(&[409]);
    let answer = send(&peer, request(Method::PUT)).await.unwrap();
    assert_eq!(
        Ending::of(&answer).unwrap().not_resent(),
        Some(NotResent::NotRetryable)
    );
}

/// RM-05, RM-06, P-B8: proof that nothing was processed.
#[tokio::test(start_paused = true)]
async fn an_unsafe_request_that_was_never_processed_is_sent_again() {
    let refused = TransportError::new(Kind::Connect, Resend::Always, "refused");
    let peer = peer([Step::error(refused), Step::answer(answer(200))]);
    let answer = send(&peer, request(Method::POST)).await.unwrap();
    assert_eq!((answer.status(), peer.started()), (StatusCode::OK, 2));
}

/// RM-01, RM-03, P-B8.
#[tokio::test(start_paused = true)]
async fn a_reset_is_sent_again_only_if_the_request_is_idempotent() {
    let reset = || {
        Step::error(TransportError::new(
            Kind::Reset,
            Resend::IfIdempotent,
            "reset",
        ))
    };
    let safe = peer([reset(), Step::answer(answer(200))]);
    assert!(send(&safe, request(Method::GET)).await.is_ok());
    let unsafe_peer = peer([reset()]);
    let error = send(&unsafe_peer, request(Method::POST)).await.unwrap_err();
    assert!(RetryError::of(&*error).unwrap().ending().is_indeterminate());
    assert_eq!(
        error.to_string(),
        "catalog: failed after 1 attempt, and may have taken effect: look before you send it again"
    );
}

/// Row C11, P-B12, law 8.
#[tokio::test(start_paused = true)]
async fn exhaustion_returns_the_last_real_response_marked() {
    let peer = peer(
        [503, 503]
            .map(|s| Step::answer(answer(s)))
            .into_iter()
            .chain([Step::answer(with(502, "x-why", "db"))]),
    );
    let answer = send(&peer, request(Method::GET)).await.unwrap();
    assert_eq!(
        (answer.status(), peer.started()),
        (StatusCode::BAD_GATEWAY, 3)
    );
    assert_eq!(answer.headers()["x-why"], "db");
    let ending = *Ending::of(&answer).unwrap();
    assert_eq!(ending.not_resent(), Some(NotResent::AttemptsExhausted));
    let body = http_body_util::BodyExt::collect(answer.into_body())
        .await
        .unwrap();
    assert_eq!(body.to_bytes(), "body of 502");
}

#[tokio::test(start_paused = true)]
async fn an_error_says_how_many_attempts_it_took() {
    let refused = || {
        Step::error(TransportError::new(
            Kind::Connect,
            Resend::Always,
            "refused",
        ))
    };
    let peer = peer([refused(), refused(), refused()]);
    let error = send(&peer, request(Method::GET)).await.unwrap_err();
    assert_eq!(error.to_string(), "catalog: failed after 3 attempts");
    assert_eq!(error.source().unwrap().to_string(), "could not connect");
}

/// RM-10 of the table: a second internal error is no accident.
#[tokio::test(start_paused = true)]
async fn an_internal_error_and_too_early_are_sent_again_once() {
    for (status, reason) in [(500, NotResent::OnceOnly), (425, NotResent::OnceOnly)] {
        let peer = statuses(&[status, status, 200]);
        let answer = send(&peer, request(Method::GET)).await.unwrap();
        assert_eq!((peer.started(), answer.status().as_u16()), (2, status));
        assert_eq!(Ending::of(&answer).unwrap().not_resent(), Some(reason));
    }
}

/// TE-V2: an intermediary forwards 425 to whoever sent the early data.
#[tokio::test(start_paused = true)]
async fn early_data_of_somebody_else_is_not_sent_again_on_425() {
    let peer = statuses(&[425]);
    let mut early = request(Method::GET);
    early
        .headers_mut()
        .insert("early-data", "1".parse().unwrap());
    assert_eq!(
        send(&peer, early).await.unwrap().status(),
        StatusCode::TOO_EARLY
    );
}

/// P-B10, RA-25, row C6: never earlier than told, and jitter only adds.
#[tokio::test(start_paused = true)]
async fn a_server_that_asks_for_a_wait_gets_at_least_that() {
    let peer = peer([
        Step::answer(with(503, "retry-after", "2")),
        Step::answer(answer(200)),
    ]);
    let start = clock::now();
    send(&peer, request(Method::GET)).await.unwrap();
    let waited = clock::now() - start;
    assert!(
        waited >= Duration::from_secs(2) && waited <= Duration::from_millis(2201),
        "{waited:?}"
    );
}

/// Row C5, RA-02: a wait of nothing is no reason to hammer.
#[tokio::test(start_paused = true)]
async fn a_hint_shorter_than_the_backoff_does_not_shorten_it() {
    for hint in ["0", "Sun, 06 Nov 1994 08:49:37 GMT", "-1", ""] {
        let peer = peer([
            Step::answer(with(503, "retry-after", hint)),
            Step::answer(answer(200)),
        ]);
        let start = clock::now();
        send(&peer, request(Method::GET)).await.unwrap();
        assert_eq!(clock::now() - start, Duration::from_millis(100), "{hint:?}");
    }
}

/// Row C3, RA-06: beyond what is accepted, the caller gets the response now.
#[tokio::test(start_paused = true)]
async fn a_wait_longer_than_accepted_ends_the_operation_at_once() {
    let peer = peer([Step::answer(with(503, "retry-after", "9999999999"))]);
    let start = clock::now();
    let answer = send(&peer, request(Method::GET)).await.unwrap();
    assert_eq!(clock::now(), start);
    assert_eq!(
        Ending::of(&answer).unwrap().not_resent(),
        Some(NotResent::HintTooLong)
    );
}

/// Rows C4 and P-B11, RA-22, law 7, DL-05.
#[tokio::test(start_paused = true)]
async fn a_wait_past_the_deadline_returns_the_response_at_once() {
    let peer = peer([Step::answer(with(429, "retry-after", "20"))]);
    let start = clock::now();
    let call = send(&peer, request(Method::GET));
    let answer = within(Duration::from_secs(5), call).await.unwrap();
    assert_eq!(
        (clock::now(), answer.status()),
        (start, StatusCode::TOO_MANY_REQUESTS)
    );
    assert_eq!(
        Ending::of(&answer).unwrap().not_resent(),
        Some(NotResent::DeadlineTooClose)
    );
}

/// Row C13: an attempt that can't finish is not begun.
#[tokio::test(start_paused = true)]
async fn no_attempt_begins_unless_its_wait_and_a_little_more_fit() {
    let peer = peer([Step::answer(answer(503)).after(Duration::from_millis(895))]);
    let call = send(&peer, request(Method::GET));
    let answer = within(Duration::from_secs(1), call).await.unwrap();
    assert_eq!((answer.status().as_u16(), peer.started()), (503, 1));
}

/// Row C15: a connection is not held through a wait.
#[tokio::test(start_paused = true)]
async fn a_response_that_gives_way_is_dropped_before_the_wait() {
    let failed = answer(503);
    let watch = failed.body().watch();
    let peer = peer([Step::answer(failed), Step::answer(answer(200))]);
    let start = clock::now();
    send(&peer, request(Method::GET)).await.unwrap();
    assert_eq!(watch.dropped_at(), Some(start));
}

/// Row C19.
#[tokio::test(start_paused = true)]
async fn a_caller_that_cancels_during_the_wait_is_let_go_and_gets_its_token_back() {
    let budget = Budget::default();
    let policy = policy().budget(budget.clone()).build().unwrap();
    let peer = statuses(&[503]);
    let call = RetryLayer::http(policy)
        .layer(peer.clone())
        .oneshot(request(Method::GET));
    let cut = tokio::time::timeout(Duration::from_millis(50), call).await;
    assert!(cut.is_err());
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!((peer.started(), budget.consumed()), (1, 0));
}

/// Rows T1, T3 and P-B15: readiness before every attempt, and none held through a wait.
#[tokio::test(start_paused = true)]
async fn every_attempt_is_ready_first_and_no_slot_is_held_through_a_wait() {
    let strict = Strict::with_slots(statuses(&[503, 200, 200]), 1);
    let first = retry().layer(strict.clone()).oneshot(request(Method::GET));
    let first = tokio::spawn(first);
    tokio::time::sleep(Duration::from_millis(50)).await;
    let second = retry().layer(strict.clone()).oneshot(request(Method::GET));
    let second = tokio::time::timeout(Duration::from_millis(10), second).await;
    assert!(
        second.unwrap().is_ok(),
        "another caller makes progress meanwhile"
    );
    assert!(first.await.unwrap().is_ok());
    assert_eq!(strict.ready_slots(), 0);
}

/// P-B18: what we refused ourselves is not the peer's failure.
#[tokio::test(start_paused = true)]
async fn a_local_rejection_is_not_sent_again() {
    let rejection = Rejection::refused(Reason::DeadlineExceeded, "catalog".into());
    let peer = peer([Step::error(rejection)]);
    let error = send(&peer, request(Method::GET)).await.unwrap_err();
    assert_eq!(peer.started(), 1);
    assert!(RetryError::of(&*error).is_none() && Rejection::of(&*error).is_some());
}

/// Law 8: the rejection of a resend still tells what the peer said last.
#[tokio::test(start_paused = true)]
async fn a_resend_that_is_refused_locally_carries_the_last_responses_head() {
    let rejection = Rejection::refused(Reason::DeadlineExceeded, "catalog".into());
    let peer = peer([
        Step::answer(with(503, "x-why", "busy")),
        Step::error(rejection),
    ]);
    let error = send(&peer, request(Method::GET)).await.unwrap_err();
    let head = Rejection::of(&*error).unwrap().last_response().unwrap();
    assert_eq!(
        (head.status.as_u16(), &head.headers["x-why"]),
        (503, &"busy".parse().unwrap())
    );
}

/// Row D9: the attempt's own timeout is worth another attempt.
#[tokio::test(start_paused = true)]
async fn an_attempt_timeout_is_sent_again_and_a_deadline_is_not() {
    let cut = |reason| Step::error(Rejection::cut(reason, "catalog".into()));
    let attempt = peer([cut(Reason::AttemptTimedOut), Step::answer(answer(200))]);
    assert!(send(&attempt, request(Method::GET)).await.is_ok());
    let deadline = peer([cut(Reason::DeadlineExceeded)]);
    assert!(send(&deadline, request(Method::GET)).await.is_err());
    assert_eq!(deadline.started(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_says_its_attempts_are_exhausted_is_obeyed() {
    let peer = peer([Step::answer(with(503, "x-mamparo-retry", "exhausted"))]);
    let answer = send(&peer, request(Method::GET)).await.unwrap();
    assert_eq!(
        Ending::of(&answer).unwrap().not_resent(),
        Some(NotResent::Forbidden)
    );
}

#[tokio::test(start_paused = true)]
async fn a_resend_carries_its_number_and_the_original_none() {
    let peer = statuses(&[503, 503, 200]);
    send(&peer, request(Method::GET)).await.unwrap();
    let numbers: Vec<_> = peer
        .requests()
        .iter()
        .map(|h| h.get(ATTEMPT_HEADER).cloned())
        .collect();
    assert_eq!(
        numbers,
        [None, Some("2".parse().unwrap()), Some("3".parse().unwrap())]
    );
}

#[tokio::test(start_paused = true)]
async fn an_empty_budget_returns_the_failure_and_says_so() {
    let budget = Budget::builder()
        .ratio(0.0)
        .min_per_second(1)
        .build()
        .unwrap();
    let heard = Heard::default();
    let policy = policy().budget(budget.clone()).build().unwrap();
    let layer = RetryLayer::http(policy).observer(Arc::new(heard.clone()));
    let peer = statuses(&[503, 503]);
    let answer = layer
        .layer(peer)
        .oneshot(request(Method::GET))
        .await
        .unwrap();
    assert_eq!(
        Ending::of(&answer).unwrap().not_resent(),
        Some(NotResent::BudgetExhausted)
    );
    assert_eq!(budget.consumed(), 1);
    assert_eq!(
        heard.all(),
        [
            "resend 2 after 100ms for unavailable hinted false",
            "not resent: budget_exhausted",
            "ended unavailable after 2",
        ]
    );
}

fn counting(nested: Nested) -> impl Fn(&'static str) -> RetryLayer<Plain> {
    let policy = policy().max_attempts(4).nested(nested).build().unwrap();
    move |name| RetryLayer::new(policy.clone(), Plain::idempotent()).dependency(name)
}

async fn sends_of_three(nested: Nested) -> usize {
    let peer = Script::<u32, u32>::new([]).otherwise(|| Step::error("no"));
    let layer = counting(nested);
    let stack = (layer("a"), layer("b"), layer("c")).layer(peer.clone());
    assert!(stack.oneshot(1).await.is_err());
    peer.started()
}

/// The articles' 64 requests out of three times four attempts.
#[tokio::test(start_paused = true)]
async fn three_retries_around_each_other_send_four_times_and_not_sixty_four() {
    assert_eq!(sends_of_three(Nested::Inherit).await, 4);
    assert_eq!(sends_of_three(Nested::Single).await, 4);
    assert_eq!(sends_of_three(Nested::Multiply).await, 64);
}

/// Row J9: a retry around another is told, not guessed.
#[tokio::test(start_paused = true)]
async fn a_nested_retry_says_so() {
    let heard = Heard::default();
    let inner = counting(Nested::Inherit)("b").observer(Arc::new(heard.clone()));
    let peer = Script::<u32, u32>::new([Step::answer(1)]);
    (counting(Nested::Inherit)("a"), inner)
        .layer(peer)
        .oneshot(1)
        .await
        .unwrap();
    assert_eq!(heard.all(), ["nested 0", "ended success after 1"]);
}

/// The peers' row "clone of the request on the last attempt and with `max_attempts` 1".
#[tokio::test(start_paused = true)]
async fn a_request_is_not_copied_when_no_resend_can_follow() {
    struct Counted(Arc<Mutex<u32>>);
    impl Clone for Counted {
        fn clone(&self) -> Self {
            *self.0.lock().unwrap() += 1;
            Self(Arc::clone(&self.0))
        }
    }
    for (attempts, copies) in [(1, 0), (3, 2)] {
        let policy = policy().max_attempts(attempts).build().unwrap();
        let count = Arc::default();
        let peer = Script::<Counted, u32, ()>::noting(|_| (), []).otherwise(|| Step::error("no"));
        let call = RetryLayer::new(policy, Plain::idempotent()).layer(peer);
        assert!(call.oneshot(Counted(Arc::clone(&count))).await.is_err());
        assert_eq!(*count.lock().unwrap(), copies, "{attempts} attempts");
    }
}

#[tokio::test(start_paused = true)]
async fn a_plain_request_that_is_not_idempotent_is_sent_again_only_with_proof() {
    let send = |peer: Script<u32, u32>| {
        let layer = RetryLayer::new(policy().build().unwrap(), Plain::not_idempotent());
        layer.layer(peer).oneshot(1)
    };
    assert!(send(Script::new([Step::error("no")])).await.is_err());
    let refused = TransportError::new(Kind::Connect, Resend::Always, "refused");
    assert_eq!(
        send(Script::new([Step::error(refused), Step::answer(7)]))
            .await
            .unwrap(),
        7
    );
}

#[tokio::test(start_paused = true)]
async fn a_readiness_error_ends_the_call() {
    let mut service = retry().layer(mamparo_testkit::service::FailsReadiness::<Answer>::new(
        "gone",
    ));
    let error =
        std::future::poll_fn(|cx| Service::<Request<ScriptedBody>>::poll_ready(&mut service, cx));
    assert!(error.await.is_err());
}

/// Row C14: what was consumed is replayed exactly, or not at all.
#[tokio::test(start_paused = true)]
async fn a_body_too_large_to_keep_is_sent_once_and_its_response_returned() {
    let policy = policy().max_body(3).build().unwrap();
    let peer = statuses(&[503]);
    let request = Request::put("http://catalog/")
        .body(ScriptedBody::new("four"))
        .unwrap();
    let answer = RetryLayer::http(policy)
        .layer(peer)
        .oneshot(request)
        .await
        .unwrap();
    assert_eq!(
        Ending::of(&answer).unwrap().not_resent(),
        Some(NotResent::BodyTooLarge)
    );
}

/// Rows C20 and J11: the error names the setting and the value.
#[test]
fn no_attempts_at_all_are_refused_when_the_policy_is_built() {
    let refused =
        |attempts| -> InvalidSetting { policy().max_attempts(attempts).build().unwrap_err() };
    assert_eq!(
        refused(0).to_string(),
        "max_attempts = 0 is refused: must be from 1 to 100: the original counts, so 1 means no resend"
    );
    assert_eq!(refused(MAX_ATTEMPTS + 1).setting(), "max_attempts");
}

#[tokio::test(start_paused = true)]
async fn the_request_is_dropped_with_its_last_attempt() {
    let (value, watch) = Tracked::new(());
    let value = Arc::new(value);
    let peer = Script::<Arc<Tracked<()>>, u32, ()>::noting(|_| (), [Step::answer(1)]);
    let call = RetryLayer::new(policy().build().unwrap(), Plain::idempotent()).layer(peer);
    call.oneshot(value).await.unwrap();
    assert!(watch.is_dropped());
}
