//! The record that `--json` writes.

use mamparo_testkit::server::{Reply, Server};
use serde_json::json;

use crate::run::call;

#[tokio::test]
async fn the_record_holds_the_answer_and_all_that_happened() {
    let answer = Reply::ok().header("x-a", "1").header("x-a", "2").body("hi");
    let server = Server::start([Reply::status(503), answer]).await;
    let ran = call(&[&server.url("/"), "--json", "--dependency", "catalog"]).await;
    assert_eq!((ran.code, &*ran.stderr), (0, ""));
    let record = ran.json();
    assert_eq!(record["outcome"], "success");
    assert_eq!(record["dependency"], "catalog");
    assert_eq!(record["status"], 200);
    assert_eq!(record["headers"]["x-a"], json!(["1", "2"]));
    assert_eq!(
        (&record["body"], &record["body_encoding"]),
        (&json!("hi"), &json!("utf8"))
    );
    let ending = json!({"attempts": 2, "not_resent": null, "indeterminate": false});
    assert_eq!(record["ending"], ending);
    let attempts = record["attempts"].as_array().unwrap();
    let statuses: Vec<_> = attempts.iter().map(|a| a["status"].as_i64()).collect();
    assert_eq!(statuses, [Some(503), Some(200)]);
    assert_eq!(attempts[1]["resend_count"], 1);
    let waits = record["waits"].as_array().unwrap();
    assert_eq!(
        (waits.len(), &waits[0]["reason"]),
        (1, &json!("unavailable"))
    );
    let traceparent = server.requests()[0]
        .header("traceparent")
        .unwrap()
        .to_owned();
    let trace = record["trace_id"].as_str().unwrap();
    assert!(
        trace.len() == 32 && traceparent.contains(trace),
        "{traceparent}"
    );
    assert!(record["elapsed_ms"].as_f64().unwrap() > 0.0);
}

#[tokio::test]
async fn bytes_that_are_no_text_are_base64() {
    let server = Server::start(Reply::ok().body(vec![0xff, 0x00])).await;
    let record = call(&[&server.url("/"), "--json"]).await.json();
    assert_eq!(
        (&record["body"], &record["body_encoding"]),
        (&json!("/wA="), &json!("base64"))
    );
    assert_eq!(record["body_length"], 2);
}

#[tokio::test]
async fn a_failure_is_a_record_too() {
    let server = Server::start(Reply::close()).await;
    let ran = call(&["POST", &server.url("/"), "--json"]).await;
    let record = ran.json();
    assert_eq!((ran.code, &record["exit_code"]), (5, &json!(5)));
    assert_eq!(record["outcome"], "indeterminate");
    let ending = json!({"attempts": 1, "not_resent": "not_idempotent", "indeterminate": true});
    assert_eq!(record["ending"], ending);
    let error = record["error"].as_str().unwrap();
    assert!(error.contains("failed after 1 attempt"), "{error}");
    assert_eq!(record["attempts"][0]["error_type"], "connection_reset");
}
