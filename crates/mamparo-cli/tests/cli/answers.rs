//! What arrives on stdout.

use std::time::Duration;

use mamparo_testkit::body::Frames;
use mamparo_testkit::server::{Reply, Server};

use crate::run::{call, mamparo, with_stdin};

#[tokio::test]
async fn the_body_arrives_byte_for_byte() {
    let bytes: Vec<u8> = (0..=u8::MAX).cycle().take(300_000).collect();
    let server = Server::start(Reply::ok().body(bytes.clone())).await;
    let ran = call(&[&server.url("/")]).await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout == bytes);
}

#[tokio::test]
async fn include_writes_the_head_first() {
    let server = Server::start(Reply::status(404).header("x-why", "gone").body("no")).await;
    let ran = call(&["-i", &server.url("/")]).await;
    let text = String::from_utf8(ran.stdout).unwrap();
    assert!(text.starts_with("HTTP/1.1 404 Not Found\r\n"), "{text}");
    assert!(
        text.contains("\r\nx-why: gone\r\n") && text.ends_with("\r\n\r\nno"),
        "{text}"
    );
    assert_eq!(ran.code, 1);
}

#[tokio::test]
async fn a_problem_is_told_in_the_last_line_too() {
    let json = r#"{"title":"Out of Stock","detail":"2 are left","status":409}"#;
    let reply = Reply::status(409).header("content-type", "application/problem+json");
    let server = Server::start(reply.body(json)).await;
    let ran = call(&[&server.url("/")]).await;
    assert_eq!((ran.code, &*ran.stdout), (1, json.as_bytes()));
    let line = ran.last_line();
    assert!(line.contains("it says: Out of Stock: 2 are left"), "{line}");
}

#[tokio::test]
async fn a_redirect_is_shown_and_not_followed() {
    let server = Server::start(Reply::status(302).header("location", "/elsewhere")).await;
    let ran = call(&[&server.url("/")]).await;
    assert_eq!((ran.code, server.requests().len()), (0, 1));
}

#[tokio::test]
async fn a_body_may_be_text_a_file_or_stdin() {
    let server = Server::start(Reply::ok()).await;
    let url = server.url("/");
    let file = concat!("@", env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    assert_eq!(call(&[&url, "-d", "text"]).await.code, 0);
    assert_eq!(call(&[&url, "-d", file]).await.code, 0);
    assert_eq!(
        with_stdin(&["call", "PUT", &url, "-d", "@-"], b"piped")
            .await
            .code,
        0
    );
    let requests = server.requests();
    let methods: Vec<_> = requests.iter().map(|r| r.method.as_str()).collect();
    assert_eq!(methods, ["POST", "POST", "PUT"]);
    assert_eq!(requests[0].body, "text");
    assert!(requests[1].body.starts_with(b"[package]"));
    let length = requests[1].body.len().to_string();
    assert_eq!(requests[1].header("content-length"), Some(&*length));
    assert_eq!(requests[2].body, "piped");
}

#[tokio::test]
async fn header_fields_are_sent_and_the_remaining_time_too() {
    let server = Server::start(Reply::ok()).await;
    let ran = call(&[
        &server.url("/a?b=c"),
        "-H",
        "x-a: 1",
        "-H",
        "x-a: 2",
        "--deadline",
        "2s",
    ])
    .await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let request = &server.requests()[0];
    assert_eq!(request.uri, "/a?b=c");
    let twice: Vec<_> = request.headers.get_all("x-a").iter().collect();
    assert_eq!(twice, ["1", "2"]);
    let remaining: u64 = request
        .header("x-request-timeout-ms")
        .unwrap()
        .parse()
        .unwrap();
    assert!((1_000..=1_950).contains(&remaining), "{remaining}");
}

/// Whoever reads along must not wait for the end.
#[tokio::test]
async fn a_slow_body_is_handed_on_as_it_comes() {
    let frames = Frames::new()
        .data("first")
        .wait(Duration::from_secs(30))
        .data("last");
    let server = Server::start(Reply::ok().body(frames).streamed()).await;
    let ran = call(&[&server.url("/"), "--deadline", "500ms"]).await;
    assert_eq!(
        (ran.code, &ran.stdout[..]),
        (3, &b"first"[..]),
        "{}",
        ran.stderr
    );
}

#[tokio::test]
async fn completions_version_and_help_are_there() {
    let ran = mamparo(&["completions", "bash"]).await;
    assert!(ran.code == 0 && String::from_utf8_lossy(&ran.stdout).contains("--idempotency-key"));
    for option in ["--hedge", "--rate-wait", "--fallback", "--plot"] {
        assert!(
            String::from_utf8_lossy(&ran.stdout).contains(option),
            "{option}"
        );
    }
    let ran = mamparo(&["--version"]).await;
    assert_eq!(
        ran.stdout,
        concat!("mamparo ", env!("CARGO_PKG_VERSION"), "\n").as_bytes()
    );
    let ran = mamparo(&["call", "--help"]).await;
    let help = String::from_utf8(ran.stdout).unwrap();
    for code in 0..=7 {
        assert!(
            help.contains(&format!("\n  {code}  ")),
            "{code} is not in:\n{help}"
        );
    }
    assert!(help.contains("Examples:") && ran.code == 0);
}

/// A full disk must not pass for a whole answer.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn an_answer_that_cannot_be_written_says_so() {
    let server = Server::start(Reply::ok().body("hello")).await;
    for more in [&[][..], &["--json"]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full");
        let child = tokio::process::Command::new(env!("CARGO_BIN_EXE_mamparo"))
            .args([&["call", &server.url("/")], more].concat())
            .stdout(full.unwrap())
            .stderr(std::process::Stdio::piped())
            .spawn();
        let output = child.unwrap().wait_with_output().await.unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(6), "{stderr}");
        assert!(
            stderr.contains("could not be written to stdout"),
            "{stderr}"
        );
    }
}
