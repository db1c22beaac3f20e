//! Peers that fail: one line says what happened, with which dependency, after how many attempts.

use std::time::Duration;

use mamparo_testkit::server::{Reply, Server};

use crate::run::{Ran, call};

const MS: Duration = Duration::from_millis(1);

/// Calls it `psp`, and checks the exit code and that the last line holds all of these, in this order.
async fn fails(url: &str, more: &[&str], code: i32, says: &[&str]) -> Ran {
    let ran = call(&[&[url, "--dependency", "psp"], more].concat()).await;
    let line = ran.last_line();
    let mut rest = line;
    for part in says {
        let found = rest.find(part);
        let at = found.unwrap_or_else(|| panic!("`{part}` is not in its place in: {line}"));
        rest = &rest[at + part.len()..];
    }
    assert!(line.starts_with("error: psp: "), "{line}");
    assert_eq!(ran.code, code, "{line}");
    ran
}

#[tokio::test]
async fn a_dead_server() {
    let server = Server::start(Reply::ok()).await;
    let url = server.url("/");
    server.stop().await;
    let says = [
        "failed after 3 attempts",
        "could not connect",
        "Connection refused",
    ];
    let ran = fails(&url, &[], 4, &says).await;
    assert!(ran.stdout.is_empty());
}

#[tokio::test]
async fn a_reset() {
    let server = Server::start(Reply::reset()).await;
    let says = ["failed after 3 attempts", "connection broke", "reset"];
    fails(&server.url("/"), &[], 4, &says).await;
}

#[tokio::test]
async fn a_closed_connection() {
    let server = Server::start(Reply::close()).await;
    let says = ["failed after 2 attempts", "connection broke", "closed"];
    fails(&server.url("/"), &["--attempts", "2"], 4, &says).await;
}

#[tokio::test]
async fn half_an_answer() {
    let server = Server::start(Reply::half()).await;
    let says = [
        "answer of attempt 1 broke off after 10 bytes",
        "end of file",
    ];
    let ran = fails(&server.url("/"), &[], 4, &says).await;
    assert_eq!(ran.stdout, b"first half");
}

#[tokio::test]
async fn tls_to_a_plain_port() {
    let server = Server::start(Reply::ok()).await;
    let url = server.url("/").replace("http:", "https:");
    let says = ["failed after 3 attempts", "could not connect"];
    fails(&url, &[], 4, &says).await;
}

#[tokio::test]
async fn a_peer_that_speaks_no_http() {
    let server = Server::start(Reply::raw("SSH-2.0-OpenSSH\r\n\r\n")).await;
    fails(
        &server.url("/"),
        &[],
        4,
        &["failed after 1 attempt: transport failed"],
    )
    .await;
}

#[tokio::test]
async fn a_name_that_does_not_exist() {
    let says = ["failed after 2 attempts", "could not connect", "dns error"];
    fails("http://nowhere.invalid/", &["--attempts", "2"], 4, &says).await;
}

#[tokio::test]
async fn a_server_that_never_answers_is_given_up_at_the_deadline() {
    let server = Server::start(Reply::hang()).await;
    let says = [
        "failed after 1 attempt",
        "deadline exceeded",
        "no answer within",
    ];
    let ran = fails(&server.url("/"), &["--deadline", "300ms"], 3, &says).await;
    assert!(ran.took < 3_000 * MS, "{:?}", ran.took);
    server.until_idle().await;
}

#[tokio::test]
async fn an_attempt_that_hangs_is_cut_and_sent_again() {
    let server = Server::start([Reply::hang(), Reply::ok()]).await;
    let ran = call(&[&server.url("/"), "--attempt-timeout", "200ms"]).await;
    assert_eq!(
        (ran.code, server.requests().len()),
        (0, 2),
        "{}",
        ran.stderr
    );
    assert!(
        ran.rows("attempt 1")[0].ends_with("timeout"),
        "{}",
        ran.stderr
    );
}

#[tokio::test]
async fn attempts_that_all_hang_are_out_of_time() {
    let server = Server::start(Reply::hang()).await;
    let says = [
        "failed after 2 attempts",
        "attempt timed out",
        "no answer within 100ms",
    ];
    let more = ["--attempt-timeout", "100ms", "--attempts", "2"];
    fails(&server.url("/"), &more, 3, &says).await;
}

#[tokio::test]
async fn an_unsafe_request_that_breaks_is_indeterminate() {
    let server = Server::start(Reply::close().commits("idempotency-key")).await;
    let says = [
        "failed after 1 attempt, and may have taken effect",
        "connection broke",
    ];
    fails(&server.url("/"), &["-d", "x"], 5, &says).await;
    assert_eq!(server.requests().len(), 1);
}
