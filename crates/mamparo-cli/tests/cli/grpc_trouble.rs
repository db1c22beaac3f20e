//! gRPC calls that can't be made: one line says why, and what to do.

use mamparo_testkit::grpc::{self, Answer};
use mamparo_testkit::server::{Reply, Server};
use tonic::Code;

use crate::grpc_server::{GrpcServer, MS, Reflection};
use crate::run::{Ran, call};

const ECHO: &str = "mamparo.test.v1.Echo";

/// Calls it `echo`, and checks the exit code and that there is one line, which says all of these in this order.
async fn stops(url: &str, more: &[&str], code: i32, says: &[&str]) -> Ran {
    let args = [&["--grpc", url, "--dependency", "echo"], more].concat();
    let ran = call(&args).await;
    let line = ran.last_line();
    let mut rest = line;
    for part in says {
        let found = rest.find(part);
        let at = found.unwrap_or_else(|| panic!("`{part}` is not in its place in: {}", ran.stderr));
        rest = &rest[at + part.len()..];
    }
    assert!(line.starts_with("error: "), "{line}");
    assert_eq!(ran.stdout, b"", "{line}");
    assert_eq!(ran.code, code, "{line}");
    ran
}

/// The same, of what stops before anything is sent: it is all that is said.
async fn refused(url: &str, more: &[&str], says: &[&str]) {
    let ran = stops(url, more, 2, says).await;
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
}

#[tokio::test]
async fn a_name_that_is_not_served_is_refused_with_those_that_are() {
    let server = GrpcServer::reflected().await;
    let url = |name: &str| server.url(name);
    refused(
        &url("mamparo.test.v1.Ecco/Say"),
        &[],
        &[
            "echo: there is no service `mamparo.test.v1.Ecco`",
            "did you mean `mamparo.test.v1.Echo`?",
        ],
    )
    .await;
    refused(
        &url("shop.Prices/Get"),
        &[],
        &["no service `shop.Prices`", "there are mamparo.test.v1.Echo"],
    )
    .await;
    refused(
        &url(""),
        &[],
        &["no service is named", "there are mamparo.test.v1.Echo"],
    )
    .await;
    refused(
        &url(ECHO),
        &[],
        &["no method of", ECHO, "it has Say, Count, Collect, Chat"],
    )
    .await;
    let say = format!("{ECHO}/Sya");
    refused(
        &url(&say),
        &[],
        &["has no method `Sya`", "did you mean `Say`?"],
    )
    .await;
    let say = format!("{ECHO}/Withdraw");
    refused(
        &url(&say),
        &[],
        &["has no method `Withdraw`", "it has Say, Count"],
    )
    .await;
    assert!(server.seen().is_empty());
}

#[tokio::test]
async fn a_method_that_streams_is_refused() {
    let server = GrpcServer::reflected().await;
    for (method, says) in [
        ("Count", "answers with a stream"),
        ("Collect", "takes a stream"),
        ("Chat", "streams both ways"),
    ] {
        let url = server.url(&format!("{ECHO}/{method}"));
        refused(&url, &[], &[says, "only unary methods can be called"]).await;
    }
}

#[tokio::test]
async fn json_that_is_not_of_the_message_is_refused_by_field() {
    let server = GrpcServer::reflected().await;
    let url = server.url(&format!("{ECHO}/Say"));
    let name = "--data is no mamparo.test.v1.EchoRequest: ";
    for (json, says) in [
        (
            "{\"txet\": \"a\"}",
            &["unrecognized field name 'txet'", "did you mean `text`?"][..],
        ),
        (
            "{\"colour\": \"a\"}",
            &["field name 'colour'", "EchoRequest has text, delay_ms"],
        ),
        ("{\"delay_ms\": \"soon\"}", &["`delay_ms`: "]),
        ("{\"delay_ms\": -1}", &["`delay_ms`: "]),
        ("{\"text\": 7}", &["`text`: ", "expected a string"]),
        ("{\"failure\": {\"code\": {}}}", &["`failure.code`: "]),
        (
            "{\"failure\": {\"metadata\": [{\"key\": 1}]}}",
            &["`failure.metadata[0].key`: "],
        ),
        ("{\"text\": \"a\"", &["EOF while parsing"]),
        ("{} {}", &["trailing characters"]),
        ("[]", &["invalid type: sequence"]),
        ("", &["EOF while parsing"]),
    ] {
        refused(&url, &["-d", json], &[&[name], says].concat()).await;
    }
    refused(
        &url,
        &["-d", "@no/such/file"],
        &["no/such/file can't be read"],
    )
    .await;
    assert!(server.seen().is_empty());
}

#[tokio::test]
async fn a_server_without_reflection_needs_a_file() {
    let server = GrpcServer::start(Reflection::None, []).await;
    let url = server.url(&format!("{ECHO}/Say"));
    let says = ["echo: has no server reflection", "with --proto FILE"];
    refused(&url, &[], &says).await;
    let denied = grpc::serve(Answer::status(Code::PermissionDenied)).await;
    let says = [
        "could not be asked what it serves",
        "PERMISSION_DENIED",
        "--proto FILE needs no reflection",
    ];
    stops(&denied.url("/a.B/C"), &[], 1, &says).await;
}

#[tokio::test]
async fn a_file_that_describes_nothing_is_refused() {
    let server = GrpcServer::start(Reflection::None, []).await;
    let url = server.url("shop.Prices/Get");
    let file = |name: &str, text: &str| {
        let path = format!("{}/{name}", env!("CARGO_TARGET_TMPDIR"));
        std::fs::write(&path, text).unwrap();
        path
    };
    refused(
        &url,
        &["--proto", "no/such.proto"],
        &["--proto: ", "no/such.proto"],
    )
    .await;
    let wrong = file(
        "wrong.proto",
        "syntax = \"proto3\";\nmessage A { string }\n",
    );
    refused(&url, &["--proto", &wrong], &["wrong.proto:2:", "expected"]).await;
    let lost = file(
        "lost.proto",
        "syntax = \"proto3\";\nimport \"no/where.proto\";\n",
    );
    let says = ["lost.proto:2:", "no/where.proto", "--proto-path"];
    refused(&url, &["--proto", &lost], &says).await;
    let empty = file("empty.proto", "syntax = \"proto3\";\n");
    refused(
        &url,
        &["--proto", &empty],
        &["no service `shop.Prices`", "none at all"],
    )
    .await;
}

#[tokio::test]
async fn a_dead_server_and_one_that_hangs() {
    let server = Server::start(Reply::ok()).await;
    let url = server.url("/a.B/C");
    server.stop().await;
    let says = ["echo: ", "could not connect", "Connection refused"];
    stops(&url, &[], 4, &says).await;
    let hangs = grpc::serve(Answer::hang()).await;
    let says = [
        "echo: could not be asked what it serves",
        "failed after 1 attempt: deadline exceeded",
    ];
    let ran = stops(&hangs.url("/a.B/C"), &["--deadline", "300ms"], 3, &says).await;
    assert!(ran.took < 3_000 * MS, "{:?}", ran.took);
}

#[tokio::test]
async fn tls_to_a_plain_port_and_a_peer_that_speaks_http_1() {
    let server = GrpcServer::reflected().await;
    let url = server
        .url(&format!("{ECHO}/Say"))
        .replace("http:", "https:");
    stops(&url, &[], 4, &["echo: ", "could not connect"]).await;
    let server = Server::start(Reply::raw("HTTP/1.1 400 Bad Request\r\n\r\n")).await;
    stops(
        &server.url("/a.B/C"),
        &[],
        4,
        &["echo: could not be asked what it serves"],
    )
    .await;
}

#[tokio::test]
async fn what_was_typed_must_make_a_call() {
    let server = GrpcServer::reflected().await;
    let url = server.url(&format!("{ECHO}/Say"));
    for (url, more, says) in [
        (
            "localhost:1/a.B/C",
            &[][..],
            "has no scheme, write http://localhost:1/a.B/C",
        ),
        (
            "grpc://a/b.C/D",
            &[],
            "scheme `grpc` can't be called: use http or https",
        ),
        (
            "http://a/b/c/D",
            &[],
            "write http://a/package.Service/Method",
        ),
        ("http://a/b.C/D?x=1", &[], "no query"),
        (
            &url,
            &["--service-config", "no/such.json"],
            "no/such.json can't be read",
        ),
        (
            &url,
            &["--service-config", "Cargo.toml"],
            "Cargo.toml is no service config",
        ),
        (&url, &["-H", "grpc-timeout: 1S"], "set --deadline"),
        (
            &url,
            &["-H", "content-type: text/plain"],
            "is written by the protocol",
        ),
    ] {
        refused(url, more, &[says]).await;
    }
    for (more, says) in [
        (&["--idempotency-key"][..], "--idempotency-key"),
        (&["--fallback", "{}"], "--fallback"),
        (&["--service-config", "x", "--hedge", "1s"], "--hedge"),
    ] {
        let ran = call(&[&["--grpc", &url], more].concat()).await;
        assert_eq!(ran.code, 2);
        assert!(ran.stderr.contains(says), "{}", ran.stderr);
    }
    let ran = call(&["--grpc", "POST", &url]).await;
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    let ran = call(&[&url, "--proto", "echo.proto"]).await;
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("--grpc"), "{}", ran.stderr);
    assert!(server.seen().is_empty());
}
