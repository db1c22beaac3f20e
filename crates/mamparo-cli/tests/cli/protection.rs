//! What one call shows of the layers that protect: hedges, a rate limit, a fallback.

use std::time::Duration;

use mamparo_testkit::server::{Reply, Server};
use serde_json::{Value, json};

use crate::run::call;

const MS: Duration = Duration::from_millis(1);

#[tokio::test]
async fn a_hedge_is_a_second_attempt_beside_the_first() {
    let server = Server::start([Reply::hang(), Reply::ok().body("fast")]).await;
    let url = server.url("/");
    let ran = call(&[&url, "--hedge", "100ms", "--dependency", "catalog"]).await;
    assert_eq!(
        (ran.code, &ran.stdout[..]),
        (0, &b"fast"[..]),
        "{}",
        ran.stderr
    );
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    assert!(requests[1].at - requests[0].at >= 95 * MS);
    assert!(
        ran.took < 1_900 * MS,
        "not the attempt's timeout: {:?}",
        ran.took
    );
    let attempts = ran.rows("attempt");
    assert_eq!(attempts.len(), 2, "{}", ran.stderr);
    assert!(attempts[0].ends_with("cancelled"), "{}", ran.stderr);
    assert!(
        attempts[1].ends_with("200, resend 1, hedge"),
        "{}",
        ran.stderr
    );
    let line = ran.last_line();
    assert!(
        line.starts_with("200 OK from catalog after 2 attempts"),
        "{line}"
    );
    assert!(line.ends_with("; hedged"), "{line}");
}

#[tokio::test]
async fn a_hedge_is_in_the_record_and_an_answer_in_time_needs_none() {
    let server = Server::start([Reply::hang(), Reply::ok()]).await;
    let ran = call(&[&server.url("/"), "--hedge", "50ms", "--json"]).await;
    let hedges = |record: &Value| -> Vec<bool> {
        let attempts = record["attempts"].as_array().unwrap().iter();
        attempts.map(|a| a["hedge"].as_bool().unwrap()).collect()
    };
    assert_eq!(hedges(&ran.json()), [false, true]);
    let ran = call(&[&server.url("/"), "--hedge", "5s", "--json"]).await;
    assert_eq!((ran.code, hedges(&ran.json())), (0, vec![false]));
}

#[tokio::test]
async fn an_unsafe_request_is_not_hedged_and_it_says_so() {
    let server = Server::start(Reply::ok().delay(200 * MS)).await;
    let unsafe_call = [&server.url("/"), "-d", "x", "--hedge", "50ms"];
    let ran = call(&unsafe_call).await;
    assert_eq!(
        (ran.code, server.requests().len()),
        (0, 1),
        "{}",
        ran.stderr
    );
    assert!(
        ran.rows("no hedge")[0].ends_with("not idempotent"),
        "{}",
        ran.stderr
    );
    let ran = call(&[&unsafe_call[..], &["--json"]].concat()).await;
    assert_eq!(ran.json()["not_hedged"], "not_idempotent");
    let before = server.requests().len();
    let ran = call(&[&unsafe_call[..], &["--idempotency-key"]].concat()).await;
    assert_eq!(
        (ran.code, server.requests().len() - before),
        (0, 2),
        "{}",
        ran.stderr
    );
}

#[tokio::test]
async fn an_attempt_that_fails_brings_its_hedge_forward() {
    let server = Server::start([Reply::status(503), Reply::ok()]).await;
    let ran = call(&[&server.url("/"), "--hedge", "10s"]).await;
    assert_eq!(
        (ran.code, server.requests().len()),
        (0, 2),
        "{}",
        ran.stderr
    );
    assert!(ran.took < Duration::from_secs(5), "{:?}", ran.took);
    let server = Server::start(Reply::status(503).body("busy")).await;
    let ran = call(&[&server.url("/"), "--hedge", "10s", "--attempts", "3"]).await;
    assert_eq!(
        (ran.code, server.requests().len()),
        (1, 3),
        "{}",
        ran.stderr
    );
    assert_eq!(ran.stdout, b"busy");
}

#[tokio::test]
async fn a_resend_above_the_rate_is_rejected_and_says_when_it_would_pass() {
    let server = Server::start([Reply::status(503), Reply::ok()]).await;
    let more = ["--rate", "1/m", "--dependency", "psp"];
    let ran = call(&[&[&*server.url("/")], &more[..]].concat()).await;
    assert_eq!(
        (ran.code, server.requests().len()),
        (7, 1),
        "{}",
        ran.stderr
    );
    let row = ran.rows("rejected")[0];
    assert!(row.contains("rate limited: not sent, again in "), "{row}");
    let line = ran.last_line();
    for part in [
        "error: psp: ",
        "rate limit is used up",
        "503",
        "; try again in ",
    ] {
        assert!(line.contains(part), "{part}: {line}");
    }
}

#[tokio::test]
async fn a_rejection_is_in_the_record() {
    let server = Server::start(Reply::status(503)).await;
    let ran = call(&[&server.url("/"), "--rate", "1/m", "--json"]).await;
    let record = ran.json();
    assert_eq!(
        (&record["outcome"], &record["exit_code"]),
        (&json!("rejected"), &json!(7))
    );
    let rejections = record["rejections"].as_array().unwrap();
    assert_eq!(rejections.len(), 1);
    let rejection = &rejections[0];
    let what = (&rejection["attempt"], &rejection["reason"]);
    assert_eq!(what, (&json!(2), &json!("rate_limited")));
    let again = rejection["retry_after_ms"].as_f64().unwrap();
    assert!((30_000.0..=60_000.0).contains(&again), "{again}");
}

#[tokio::test]
async fn a_resend_that_may_wait_waits_for_its_turn() {
    let server = Server::start([Reply::status(503), Reply::ok()]).await;
    let more = ["--rate", "1/500ms", "--rate-wait", "1s"];
    let ran = call(&[&[&*server.url("/")], &more[..]].concat()).await;
    let requests = server.requests();
    assert_eq!((ran.code, requests.len()), (0, 2), "{}", ran.stderr);
    assert!(requests[1].at - requests[0].at >= 450 * MS);
    let waits = ran.rows("wait");
    assert_eq!(waits.len(), 2, "{}", ran.stderr);
    assert!(waits[0].ends_with("unavailable: backoff"), "{}", ran.stderr);
    assert!(
        waits[1].ends_with("for its turn under the rate limit"),
        "{}",
        ran.stderr
    );
}

#[tokio::test]
async fn a_wait_for_a_turn_is_in_the_record() {
    let server = Server::start([Reply::status(503), Reply::ok()]).await;
    let more = ["--rate", "1/500ms", "--rate-wait", "1s", "--json"];
    let ran = call(&[&[&*server.url("/")], &more[..]].concat()).await;
    let record = ran.json();
    let wait = &record["waits"][1];
    let what = (&wait["reason"], &wait["before_attempt"], &wait["hinted"]);
    assert_eq!(what, (&json!("rate_limit"), &json!(2), &json!(false)));
    assert_eq!(record["rejections"], json!([]));
}

#[tokio::test]
async fn a_fallback_answers_and_is_marked() {
    let server = Server::start(Reply::status(503)).await;
    let more = [
        "--fallback",
        "[]",
        "--attempts",
        "1",
        "--dependency",
        "catalog",
    ];
    let ran = call(&[&[&*server.url("/")], &more[..]].concat()).await;
    assert_eq!(
        (ran.code, &ran.stdout[..]),
        (0, &b"[]"[..]),
        "{}",
        ran.stderr
    );
    let row = ran.rows("fallback")[0];
    assert!(row.ends_with("served, instead of unavailable"), "{row}");
    let line = ran.last_line();
    assert!(
        line.starts_with("200 OK from the fallback of catalog after 1 attempt in"),
        "{line}"
    );
    assert!(line.ends_with("; instead of: unavailable"), "{line}");
    let ran = call(&[&[&*server.url("/"), "-i"], &more[..]].concat()).await;
    let head = String::from_utf8(ran.stdout).unwrap();
    assert!(head.contains("\r\nx-fallback: true\r\n"), "{head}");
}

#[tokio::test]
async fn a_fallback_may_come_from_a_file_and_the_record_says_what_it_is_instead_of() {
    let server = Server::start(Reply::ok()).await;
    let url = server.url("/");
    let file = concat!("@", env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let whole = call(&[&url, "--fallback", file, "--json"]).await.json();
    assert_eq!(
        (&whole["fallback"], &whole["body"]),
        (&Value::Null, &json!(""))
    );
    server.stop().await;
    let ran = call(&[&url, "--fallback", file, "--json"]).await;
    let record = ran.json();
    assert_eq!((ran.code, &record["status"]), (0, &json!(200)));
    assert_eq!(record["fallback"], json!({"instead_of": "connect"}));
    assert!(record["body"].as_str().unwrap().starts_with("[package]"));
}

#[tokio::test]
async fn a_fallback_hides_no_answer_that_is_the_callers_own_fault() {
    let server = Server::start(Reply::status(404).body("no such item")).await;
    let ran = call(&[&server.url("/"), "--fallback", "[]"]).await;
    assert_eq!((ran.code, &ran.stdout[..]), (1, &b"no such item"[..]));
}

#[tokio::test]
async fn a_fallback_does_not_make_an_unknown_outcome_known() {
    let server = Server::start(Reply::status(503)).await;
    let ran = call(&[&server.url("/"), "-d", "x", "--fallback", "later"]).await;
    assert_eq!(
        (ran.code, &ran.stdout[..]),
        (5, &b"later"[..]),
        "{}",
        ran.stderr
    );
    assert!(
        ran.last_line().contains("may have taken effect"),
        "{}",
        ran.stderr
    );
}

#[tokio::test]
async fn a_fallback_stands_in_for_a_rejection_too() {
    let server = Server::start([Reply::status(500), Reply::ok()]).await;
    let more = ["--rate", "1/m", "--fallback", "later", "--json"];
    let ran = call(&[&[&*server.url("/")], &more[..]].concat()).await;
    let record = ran.json();
    assert_eq!((ran.code, server.requests().len()), (0, 1), "{record}");
    assert_eq!(record["fallback"], json!({"instead_of": "rate_limited"}));
    assert_eq!(record["rejections"][0]["reason"], "rate_limited");
}
