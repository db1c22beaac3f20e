//! An operation through the stack's usual layers.

use std::time::Duration;

use http::Request;
use mamparo_core::{CallContext, Rejection, clock};
use mamparo_testkit::body::ScriptedBody;
use mamparo_testkit::service::{Script, Step, Strict};
use tower::{Layer, ServiceExt};

use super::cast::{Answered, Wire, answer, peer, post};
use crate::attempt_timeout::AttemptPolicy;
use crate::deadline::DeadlinePolicy;
use crate::idempotency_key::KeyPolicy;
use crate::retry::{Ending, RetryError};
use crate::stack::Stack;

#[tokio::test(start_paused = true)]
async fn one_key_serves_all_attempts_and_each_is_told_what_remains() {
    let peer = peer([answer(503), answer(200)]);
    let stack = Stack::http("psp").idempotency_key(KeyPolicy::default());
    let response = stack
        .layer(Strict::new(peer.clone()))
        .oneshot(post())
        .await
        .unwrap();
    assert_eq!(Ending::of(&response).unwrap().attempts(), 2);
    let seen = peer.requests();
    assert_eq!(seen[0].0["idempotency-key"], seen[1].0["idempotency-key"]);
    assert_ne!(
        seen[0].0["x-request-timeout-ms"],
        seen[1].0["x-request-timeout-ms"]
    );
}

#[tokio::test(start_paused = true)]
async fn all_layers_share_one_operation_whose_context_the_transport_sees() {
    let peer = peer([answer(503), answer(200)]);
    let stack = Stack::http("psp").idempotency_key(KeyPolicy::default());
    stack.layer(peer.clone()).oneshot(post()).await.unwrap();
    let contexts: Vec<CallContext> = peer.requests().into_iter().map(|seen| seen.1).collect();
    assert_eq!(contexts[0].operation(), contexts[1].operation());
    assert_eq!([contexts[0].attempt(), contexts[1].attempt()], [1, 2]);
    assert!(
        contexts
            .iter()
            .all(|c| c.dependency().as_str() == "psp" && c.key_hash().is_some())
    );
    assert!(
        contexts
            .iter()
            .all(|c| c.attempt_timeout() == Duration::from_secs(2))
    );
}

/// Rows D9 and P-B16, `DL-02`: the attempt's timeout is worth another attempt, the deadline is not.
#[tokio::test(start_paused = true)]
async fn attempts_that_hang_are_cut_and_the_operation_at_its_deadline() {
    let peer = Script::noting(|_: &Wire| (), []).otherwise(Step::<Answered>::hang);
    let attempt = AttemptPolicy::builder().timeout(Duration::from_millis(600));
    let stack = Stack::http("catalog")
        .deadline(DeadlinePolicy::within(Duration::from_secs(1)).unwrap())
        .attempt(attempt.build().unwrap());
    let start = clock::now();
    let get = Request::get("http://catalog/")
        .body(ScriptedBody::empty())
        .unwrap();
    let error = stack.layer(peer.clone()).oneshot(get).await.unwrap_err();
    let took = clock::now() - start;
    assert!(
        took >= Duration::from_millis(949) && took <= Duration::from_millis(951),
        "{took:?}"
    );
    assert_eq!((peer.started(), peer.running()), (2, 0));
    assert!(Rejection::of(&*error).unwrap().is_deadline_exceeded());
    assert_eq!(RetryError::of(&*error).unwrap().ending().attempts(), 2);
}

#[tokio::test(start_paused = true)]
async fn without_a_key_an_unsafe_request_is_sent_once() {
    let peer = peer([answer(503)]);
    let response = Stack::http("psp")
        .layer(peer.clone())
        .oneshot(post())
        .await
        .unwrap();
    assert!(Ending::of(&response).unwrap().is_indeterminate());
    assert_eq!(peer.started(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_key_under_another_name_makes_a_request_safe_to_send_again_too() {
    let peer = peer([answer(503), answer(200)]);
    let name = http::HeaderName::from_static("x-payout-idempotency");
    let keys = KeyPolicy::builder().header(name).build().unwrap();
    let stack = Stack::http("psp").idempotency_key(keys);
    stack.layer(peer.clone()).oneshot(post()).await.unwrap();
    assert_eq!(peer.started(), 2);
}
