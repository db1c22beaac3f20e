use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use http_body_util::Full;
use mamparo_core::BoxError;
use proptest::prelude::*;
use tower::ServiceExt as _;

use super::{HttpSender, Judge, StoredRequest};
use crate::backend::Request as Claimed;
use crate::machine::{Outcome, Terms, TransactionId, Utc};
use crate::policy::Policy;

fn claimed(id: &str, body: Bytes) -> Claimed {
    let now = Utc::from_millis(0).unwrap();
    let terms = Terms::new(
        TransactionId::new(id).unwrap(),
        "psp",
        &Policy::default(),
        now,
    );
    Claimed::new(&terms, 2, 0, body)
}

fn request() -> Request<Bytes> {
    Request::post("http://psp/charges?a=b")
        .header("content-type", "text/plain")
        .header("x-twice", "1")
        .header("x-twice", HeaderValue::from_bytes(b"caf\xe9").unwrap())
        .header("authorization", "Bearer secret")
        .header("idempotency-key", "old")
        .body(Bytes::from("5\nEUR"))
        .unwrap()
}

#[test]
fn a_request_is_read_back_as_it_was_but_for_secrets_and_what_each_send_has_anew() {
    let again = StoredRequest::decode(&StoredRequest::new(&request()).encode()).unwrap();
    assert_eq!(
        (again.method().as_str(), again.uri().path()),
        ("POST", "/charges")
    );
    let again = again.into_request();
    let twice: Vec<_> = again
        .headers()
        .get_all("x-twice")
        .iter()
        .map(HeaderValue::as_bytes)
        .collect();
    assert_eq!(twice, [&b"1"[..], b"caf\xe9"]);
    assert_eq!(again.headers().len(), 3);
    assert_eq!(again.body(), "5\nEUR");
}

proptest! {
    #[test]
    fn no_bytes_make_reading_a_request_panic(bytes: Vec<u8>) {
        let bytes = Bytes::from(bytes);
        prop_assert!(StoredRequest::decode(&bytes).is_err());
    }
}

#[tokio::test]
async fn a_claimed_request_goes_out_under_the_key_of_its_attempt_with_the_secrets_of_the_sender() {
    let client = tower::service_fn(async |request: Request<Full<Bytes>>| {
        assert_eq!(request.headers()["authorization"], "Bearer new");
        let key = request.headers()["idempotency-key"].clone();
        let body = format!(r#"{{"result":{{"state":"CANCELLED"}},"key":{key:?}}}"#);
        let answer = Response::builder()
            .header("retry-after", "60")
            .header("x-key", key);
        Ok::<_, BoxError>(answer.body(Full::new(Bytes::from(body)))?)
    });
    let judge = Judge::builder()
        .field("result.state")
        .refused_values(["CANCELLED"]);
    let headers = [(
        http::header::AUTHORIZATION,
        HeaderValue::from_static("Bearer new"),
    )];
    let sender =
        HttpSender::new(client, judge.build().unwrap()).headers(headers.into_iter().collect());
    let body = StoredRequest::new(&request()).encode();
    let answer = sender
        .clone()
        .oneshot(claimed("p", body))
        .await
        .unwrap()
        .unwrap();
    assert_eq!((answer.attempt, answer.outcome), (2, Outcome::Refused));
    assert_eq!(answer.reason.unwrap().as_str(), "CANCELLED");
    assert!(answer.not_before.is_some());
    let strange = claimed("p", Bytes::from("nonsense"));
    let answer = sender.oneshot(strange).await.unwrap().unwrap();
    assert_eq!(answer.outcome, Outcome::Declined);
    assert!(
        answer
            .reason
            .unwrap()
            .as_str()
            .starts_with("request = no line is refused")
    );
}

#[tokio::test]
async fn a_header_that_is_given_twice_is_sent_twice_in_the_place_of_what_was_stored() {
    let client = tower::service_fn(async |request: Request<Full<Bytes>>| {
        let sent = request.headers().get_all("x-token").iter();
        assert_eq!(sent.collect::<Vec<_>>(), ["a", "b"]);
        Ok::<_, BoxError>(Response::new(Full::new(Bytes::new())))
    });
    let mut headers = HeaderMap::new();
    for value in ["a", "b"] {
        headers.append("x-token", HeaderValue::from_static(value));
    }
    let sender = HttpSender::new(client, Judge::default()).headers(headers);
    let mut stored = request();
    let old = HeaderValue::from_static("old");
    stored.headers_mut().insert("x-token", old);
    let claimed = claimed("p", StoredRequest::new(&stored).encode());
    let answer = sender.oneshot(claimed).await.unwrap().unwrap();
    assert_eq!(answer.outcome, Outcome::Success);
}

#[test]
fn keys_are_structured_strings_or_bare() {
    let key = |key, bare| super::sender::key(key, bare).unwrap();
    assert_eq!(key("p#1", false), "\"p#1\"");
    assert_eq!(key("p#1", true), "p#1");
    assert_eq!(key("\"é#1", false), "\"\\\"%C3%A9#1\"");
}

#[test]
fn a_judge_that_contradicts_itself_is_refused() {
    let says = |builder: super::JudgeBuilder| builder.build().unwrap_err().to_string();
    let conflict = [StatusCode::CONFLICT];
    let both = Judge::builder().refused(conflict).declined(conflict);
    assert_eq!(
        says(both),
        "declined = 409 Conflict is refused: must not be refused too"
    );
    let ok = Judge::builder().refused([StatusCode::OK]);
    assert!(says(ok).contains("must be no success"));
    let nowhere = Judge::builder().refused_values(["X"]);
    assert!(says(nowhere).contains("must be named"));
    let twice = Judge::builder()
        .field("s")
        .refused_values(["X"])
        .declined_values(["X"]);
    assert!(says(twice).contains("declined_values = X"));
}
