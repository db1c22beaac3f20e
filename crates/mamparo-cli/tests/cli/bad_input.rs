//! What was typed makes no call: one line says why, and nothing is sent.

use mamparo_testkit::server::{Reply, Server};

use crate::run::{call, mamparo};

/// Each of these is one line of error that says this, and no call.
async fn refused(wrong: &[(&[&str], &str)]) {
    for (args, says) in wrong {
        let ran = call(args).await;
        let first = ran.stderr.lines().next().unwrap_or_default();
        assert!(first.starts_with("error: "), "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(says), "{args:?}: {}", ran.stderr);
        assert!(!ran.stderr.contains("secret"), "{}", ran.stderr);
        assert_eq!((ran.code, ran.stdout.len()), (2, 0), "{args:?}");
    }
}

#[tokio::test]
async fn nonsense_is_refused_by_name_and_nothing_is_sent() {
    let server = Server::start(Reply::ok()).await;
    let url = &*server.url("/");
    let wrong: [(&[&str], &str); 20] = [
        (
            &["localhost:80/x"],
            "has no scheme, write http://localhost:80/x",
        ),
        (&["http://"], "is no URL: empty host"),
        (&["http://a:b:c/"], "is no URL"),
        (
            &["ftp://a/"],
            "scheme `ftp` can't be called: use http or https",
        ),
        (&["http://me:secret@a/"], "use -H 'authorization: …'"),
        (&["GE T", url], "`GE T` is no method"),
        (&[url, "-H", "accept"], "no colon: write 'name: value'"),
        (&[url, "-H", "a b: c"], "`a b` can't be the name"),
        (&[url, "-H", "a: b\nc"], "no header field may"),
        (
            &[url, "-d", "@no/such/file"],
            "no/such/file can't be read: No such file",
        ),
        (&[url, "-d", "@src"], "src is a folder"),
        (&[url, "--deadline", "2"], "write 2s or 2000ms"),
        (&[url, "--deadline", "0s"], "must be longer than zero"),
        (&[url, "--attempt-timeout", "soon"], "write 2s, 500ms"),
        (&[url, "--attempts", "0"], "--attempts"),
        (&[url, "--attempts", "101"], "--attempts"),
        (&[url, "--dependency", ""], "--dependency is empty"),
        (&[url, "--idempotency-key=a\nb"], "no header field may"),
        (
            &[url, "--idempotency-key=a", "-H", "idempotency-key: b"],
            "is there twice",
        ),
        (&[url, "--otlp", "localhost"], "write http://localhost:4317"),
    ];
    refused(&wrong).await;
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn nonsense_about_the_layers_that_protect_is_refused_too() {
    let server = Server::start(Reply::ok()).await;
    let url = &*server.url("/");
    let wrong: [(&[&str], &str); 15] = [
        (&[url, "--hedge", "100"], "write 100s or 100000ms"),
        (&[url, "--hedge", "0ms"], "must be longer than zero"),
        (&[url, "--hedge", "none"], "write 2s, 500ms"),
        (
            &[url, "--hedge", "1s", "--attempts", "11"],
            "must be from 1 to 10",
        ),
        (&[url, "--rate", "5"], "such as 5/s"),
        (&[url, "--rate", "five/s"], "such as 5/s"),
        (&[url, "--rate", "0/s"], "it lets nothing pass"),
        (&[url, "--rate", "5/0s"], "it lets nothing pass"),
        (
            &[url, "--rate", "1/10years"],
            "from one a year to one a nanosecond",
        ),
        (&[url, "--rate-wait", "1s"], "--rate <N/PERIOD>"),
        (
            &[url, "--rate", "1/s", "--rate-wait", "0s"],
            "must be longer than zero",
        ),
        (&[url, "--fallback", "@"], "@ needs a file's name"),
        (
            &[url, "--fallback", "@-"],
            "--fallback can't be read from stdin",
        ),
        (
            &[url, "--fallback", "@no/such/file"],
            "no/such/file can't be read: No such file",
        ),
        (
            &[url, "--fallback", "@src"],
            "src can't be read: Is a directory",
        ),
    ];
    refused(&wrong).await;
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn nothing_typed_shows_the_help() {
    let ran = mamparo(&[]).await;
    assert!(ran.stderr.contains("Usage: mamparo"), "{}", ran.stderr);
    assert_eq!(ran.code, 2);
}
