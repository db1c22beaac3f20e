//! What is sent, how often, and when.

use std::collections::HashSet;
use std::time::Duration;

use mamparo_testkit::server::{Reply, Server};

use crate::collector::Collector;
use crate::run::call;

const MS: Duration = Duration::from_millis(1);

/// The parts of a `traceparent`: trace and parent id.
fn parent(header: &str) -> (&str, &str) {
    let mut parts = header.split('-').skip(1);
    (parts.next().unwrap(), parts.next().unwrap())
}

/// Rows P-D8 and I9; RC-02, RC-07, RC-11.
#[tokio::test]
async fn each_of_three_requests_is_a_numbered_span_of_one_trace() {
    let server = Server::start([Reply::status(503), Reply::status(503), Reply::ok()]).await;
    let collector = Collector::start().await;
    let ran = call(&[&server.url("/"), "--otlp", &collector.url()]).await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);

    let requests = server.requests();
    assert_eq!(requests.len(), 3);
    let clients = collector.client_spans();
    let counts: Vec<_> = clients.iter().map(|span| span.resend_count).collect();
    assert_eq!(counts, [None, Some(1), Some(2)]);

    let seen: Vec<_> = requests
        .iter()
        .map(|request| parent(request.header("traceparent").unwrap()))
        .collect();
    let exported: Vec<_> = clients
        .iter()
        .map(|span| (span.trace_id.as_str(), span.span_id.as_str()))
        .collect();
    assert_eq!(seen, exported, "the server sees the spans' own ids");
    let traces: HashSet<_> = seen.iter().map(|(trace, _)| trace).collect();
    let parents: HashSet<_> = seen.iter().map(|(_, parent)| parent).collect();
    assert_eq!((traces.len(), parents.len()), (1, 3));
}

#[tokio::test]
async fn the_waterfall_has_a_line_for_the_operation_each_attempt_and_each_wait() {
    let server = Server::start([Reply::status(503), Reply::status(503), Reply::ok()]).await;
    let ran = call(&[&server.url("/"), "--dependency", "catalog"]).await;
    assert_eq!(ran.rows("catalog").len(), 1, "{}", ran.stderr);
    assert_eq!(ran.rows("attempt").len(), 3, "{}", ran.stderr);
    assert_eq!(ran.rows("wait").len(), 2, "{}", ran.stderr);
    assert!(ran.rows("attempt 3")[0].ends_with("200, resend 2"));
    assert!(ran.rows("wait")[0].ends_with("unavailable: backoff"));
    assert!(!ran.stderr.contains('\u{1b}'), "no colour off a terminal");
    let line = ran.last_line();
    assert!(
        line.starts_with("200 OK from catalog after 3 attempts in "),
        "{line}"
    );
    assert!(line.ends_with("; recovered"), "{line}");
}

/// Row P-B10.
#[tokio::test]
async fn a_server_that_asks_for_two_seconds_gets_them() {
    let busy = Reply::status(503).header("retry-after", "2");
    let server = Server::start([busy, Reply::ok()]).await;
    let ran = call(&[&server.url("/")]).await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let requests = server.requests();
    let wait = requests[1].at - requests[0].at;
    assert!(wait >= 2_000 * MS, "{wait:?}");
    assert!(ran.rows("wait")[0].ends_with("unavailable: the server asked for it"));
}

/// Row C4.
#[tokio::test]
async fn a_wait_that_does_not_fit_the_deadline_is_not_begun() {
    let busy = Reply::status(503).header("retry-after", "60").body("busy");
    let server = Server::start(busy).await;
    let ran = call(&[&server.url("/"), "--deadline", "2s"]).await;
    assert_eq!((ran.code, &ran.stdout[..]), (1, &b"busy"[..]));
    assert!(ran.took < 1_500 * MS, "{:?}", ran.took);
    assert_eq!(server.requests().len(), 1);
    assert!(ran.last_line().contains("not sent again"), "{}", ran.stderr);
}

/// Row C1.
#[tokio::test]
async fn an_unsafe_request_without_a_key_is_sent_once() {
    let server = Server::start(Reply::status(503)).await;
    let ran = call(&["POST", &server.url("/"), "-d", "x"]).await;
    assert_eq!(server.requests().len(), 1);
    assert_eq!(ran.code, 5, "{}", ran.stderr);
    assert!(
        ran.last_line().contains("may have taken effect"),
        "{}",
        ran.stderr
    );
}

#[tokio::test]
async fn a_request_with_a_key_is_sent_again_with_the_same_key() {
    let server = Server::start([Reply::status(503), Reply::status(503), Reply::ok()]).await;
    let ran = call(&["POST", &server.url("/"), "-d", "x", "--idempotency-key"]).await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let requests = server.requests();
    let keys: HashSet<_> = requests
        .iter()
        .map(|r| r.header("idempotency-key"))
        .collect();
    assert_eq!((requests.len(), keys.len()), (3, 1));
    let key = keys.into_iter().next().flatten().unwrap();
    assert_eq!(key.len(), 38, "a UUID in quotes: {key}");
    assert!(requests.iter().all(|request| request.body == "x"));
}

#[tokio::test]
async fn a_key_is_sent_as_it_is_written() {
    let server = Server::start([Reply::status(503), Reply::ok()]).await;
    let ran = call(&["PATCH", &server.url("/"), "--idempotency-key=order-7"]).await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    assert!(
        requests
            .iter()
            .all(|r| r.header("idempotency-key") == Some("order-7"))
    );
}

#[tokio::test]
async fn an_answer_that_is_lost_after_the_commit_is_one_effect_and_one_answer() {
    let lost = Reply::close().commits("idempotency-key");
    let charged = Reply::status(201)
        .commits("idempotency-key")
        .body("charged");
    let server = Server::start([lost, charged]).await;
    let ran = call(&[
        "POST",
        &server.url("/charges"),
        "-d",
        "9.99",
        "--idempotency-key=k1",
    ])
    .await;
    assert_eq!(
        (ran.code, &ran.stdout[..]),
        (0, &b"charged"[..]),
        "{}",
        ran.stderr
    );
    assert_eq!(server.requests().len(), 2);
    assert_eq!(
        server.effects().into_iter().collect::<Vec<_>>(),
        [("k1".to_owned(), 1)]
    );
}

#[tokio::test]
async fn as_many_attempts_as_asked_for_are_made() {
    let server = Server::start(Reply::status(502)).await;
    let ran = call(&[&server.url("/"), "--attempts", "2"]).await;
    assert_eq!((server.requests().len(), ran.code), (2, 1));
    assert!(
        ran.last_line()
            .ends_with("not sent again: attempts exhausted"),
        "{}",
        ran.stderr
    );
    let ran = call(&[&server.url("/"), "--attempts", "1"]).await;
    assert_eq!((server.requests().len(), ran.code), (3, 1));
}
