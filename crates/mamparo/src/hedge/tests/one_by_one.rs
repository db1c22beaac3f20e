//! Requests that are not safe to be made twice, and waits that a server asks for.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request, StatusCode};
use http_body_util::BodyExt;
use mamparo_core::{Budget, Kind, NotResent, Plain, Resend, TransportError};
use mamparo_testkit::body::ScriptedBody;
use mamparo_testkit::service::{Script, Step};
use tower::{Layer, Service, ServiceExt};

use super::cast::*;
use crate::hedge::{Ending, HedgeLayer, RetryError};
use crate::replay::{ATTEMPT_HEADER, ReplayBody};
use crate::retry::{RetryLayer, RetryPolicy};

fn refused<Res>() -> Step<Res> {
    let refused = TransportError::new(Kind::Connect, Resend::Always, "connection refused");
    Step::error(refused).after(10 * MS)
}

fn post(body: &'static str) -> Request<ScriptedBody> {
    let request = Request::post("http://catalog/");
    request.body(ScriptedBody::new(body)).unwrap()
}

/// RM-05 and RM-06: what was never processed is sent again whatever its method, one attempt after the other.
#[tokio::test(start_paused = true)]
async fn an_unsafe_request_that_was_never_processed_is_sent_again_but_never_twice_at_once() {
    let heard = Heard::default();
    let policy = policy().max_attempts(3).build().unwrap();
    let layer = HedgeLayer::http(policy).observer(Arc::new(heard.clone()));
    let peer = peer([refused(), refused(), after(1_000, 200)]);
    let answer = layer.layer(peer.clone()).oneshot(post("order")).await;
    let answer = answer.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(sends(&peer), [0, 10, 20]);
    assert_eq!(Ending::of(&answer).unwrap().attempts(), 3);
    let all = heard.all();
    assert_eq!(all[0], "off: not_idempotent");
    assert_eq!(all[2], "sent 2 beside 0 after 100ms: connect");
}

/// The same body, read by one attempt at a time.
#[tokio::test(start_paused = true)]
async fn the_attempt_after_it_sends_the_same_body() {
    let bodies = Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = Arc::clone(&bodies);
    let server = tower::service_fn(move |request: Wire| {
        let seen = Arc::clone(&seen);
        async move {
            let sent = request.into_body().collect().await?.to_bytes();
            let first = {
                let mut seen = seen.lock().unwrap();
                seen.push(sent);
                seen.len() == 1
            };
            if first {
                let refused = TransportError::new(Kind::Unavailable, Resend::Always, "refused");
                return Err(mamparo_core::BoxError::from(refused));
            }
            Ok(answer(200))
        }
    });
    hedge().layer(server).oneshot(post("order")).await.unwrap();
    assert_eq!(*bodies.lock().unwrap(), ["order", "order"]);
}

/// RM-03: an unknown outcome is no proof, after a resend neither.
#[tokio::test(start_paused = true)]
async fn an_unsafe_request_whose_outcome_is_unknown_is_not_sent_again() {
    let reset = || {
        Step::error(TransportError::new(
            Kind::Reset,
            Resend::IfIdempotent,
            "reset",
        ))
    };
    let policy = policy().max_attempts(5).build().unwrap();
    let peer = peer([refused(), reset(), after(0, 200)]);
    let call = HedgeLayer::http(policy).layer(peer.clone());
    let error = call.oneshot(post("order")).await.unwrap_err();
    assert_eq!(peer.started(), 2);
    let ending = RetryError::of(&*error).unwrap().ending();
    assert_eq!(ending.not_resent(), Some(NotResent::NotIdempotent));
    assert!(ending.is_indeterminate());
}

#[tokio::test(start_paused = true)]
async fn what_is_sent_one_by_one_is_bounded_like_a_hedge() {
    let none = Budget::builder()
        .ratio(0.0)
        .min_per_second(0)
        .build()
        .unwrap();
    let cases = [
        (policy().max_attempts(1), NotResent::AttemptsExhausted),
        (policy().max_body(3), NotResent::BodyTooLarge),
        (policy().budget(none), NotResent::BudgetExhausted),
    ];
    for (policy, reason) in cases {
        let layer = HedgeLayer::http(policy.build().unwrap());
        let peer = peer([refused(), after(0, 200)]);
        let call = layer.layer(peer.clone()).oneshot(post("order"));
        let error = call.await.unwrap_err();
        assert_eq!(peer.started(), 1);
        let ending = RetryError::of(&*error).map(RetryError::ending);
        assert_eq!(ending.and_then(|ending| ending.not_resent()), Some(reason));
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_not_idempotent_is_not_asked_twice_at_once_even_without_a_delay() {
    let policy = policy().fixed(Duration::ZERO).max_attempts(3);
    let layer = HedgeLayer::new(policy.build().unwrap(), Plain::not_idempotent());
    let peer = Script::<u32, u32>::new([refused(), Step::answer(7).after(1_000 * MS)]);
    assert_eq!(layer.layer(peer.clone()).oneshot(1).await.unwrap(), 7);
    assert_eq!(peer.started(), 2);
}

/// Never earlier than the server asked, whatever another attempt hears meanwhile.
#[tokio::test(start_paused = true)]
async fn a_failure_beside_it_does_not_shorten_the_wait_that_a_server_asked_for() {
    for other in [
        after(60, 502),
        Step::answer(with(503, "retry-after", "1")).after(60 * MS),
    ] {
        let busy = Step::answer(with(503, "retry-after", "2")).after(150 * MS);
        let peer = peer([busy, other, after(1, 200)]);
        let policy = policy().max_attempts(3).build().unwrap();
        let call = HedgeLayer::http(policy).layer(peer.clone());
        call.oneshot(request(Method::GET)).await.unwrap();
        assert_eq!(sends(&peer), [0, 100, 2150]);
    }
}

/// Row P-D2: the answer that lost is gone when the caller has the one that won, however long the future is kept.
#[tokio::test(start_paused = true)]
async fn a_failed_answer_is_dropped_with_the_losers() {
    let failed = answer(503);
    let watch = failed.body().watch();
    let peer = peer([Step::answer(failed).after(10 * MS), after(10, 200)]);
    let mut service = hedge().layer(peer);
    let mut call = pin!(service.ready().await.unwrap().call(get()));
    let answer = call.as_mut().await.unwrap();
    assert!(answer.status().is_success() && watch.is_dropped());
}

/// RC-08: whoever owns the resends numbers them, and one further in that leaves them to it takes no number away.
#[tokio::test(start_paused = true)]
async fn a_hedge_that_owns_no_resends_leaves_the_number_of_one_as_it_is() {
    let peer = Script::noting(
        |request: &Request<ReplayBody<ReplayBody<ScriptedBody>>>| {
            request.headers().get(ATTEMPT_HEADER).cloned()
        },
        [after(0, 503), after(0, 200)],
    );
    let retry = RetryLayer::http(RetryPolicy::default());
    let mut get = get();
    let callers_own = "7".parse().unwrap();
    get.headers_mut().insert(ATTEMPT_HEADER, callers_own);
    let stack = (retry, hedge()).layer(peer.clone());
    stack.oneshot(get).await.unwrap();
    assert_eq!(peer.requests(), [None, Some("2".parse().unwrap())]);
}
