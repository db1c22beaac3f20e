//! Unary gRPC methods: JSON in, JSON out, and what happened in between.

use mamparo_testkit::grpc::{self, Answer};
use serde_json::json;
use tonic::{Code, Status};

use crate::collector::Collector;
use crate::grpc_server::{GrpcServer, MS, Reflection, pushed_back};
use crate::run::{Ran, call, mamparo, with_stdin};

const SAY: &str = "mamparo.test.v1.Echo/Say";
const PROTO: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../mamparo-testkit/proto/echo.proto"
);

async fn say(server: &GrpcServer, more: &[&str]) -> Ran {
    say_to(&server.url(SAY), more).await
}

async fn say_to(url: &str, more: &[&str]) -> Ran {
    call(&[&["--grpc", url, "--dependency", "echo"], more].concat()).await
}

#[tokio::test]
async fn json_goes_in_and_comes_out() {
    let server = GrpcServer::reflected().await;
    let ran = say(&server, &["-d", r#"{"text": "hola"}"#]).await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(ran.json(), json!({"text": "hola", "number": 1}));
    let line = ran.last_line();
    assert!(
        line.starts_with("OK from echo after 1 attempt in "),
        "{line}"
    );
    assert_eq!(ran.rows("echo").len(), 1, "{}", ran.stderr);
    assert!(ran.rows("attempt 1")[0].ends_with("OK"), "{}", ran.stderr);
}

#[tokio::test]
async fn without_data_an_empty_message_is_sent() {
    let server = GrpcServer::reflected().await;
    let ran = say(&server, &[]).await;
    assert_eq!(
        (ran.code, ran.json()["text"].as_str()),
        (0, Some("")),
        "{}",
        ran.stderr
    );
}

#[tokio::test]
async fn the_message_can_come_from_stdin_and_fields_have_either_name() {
    let server = GrpcServer::reflected().await;
    let args = ["call", "--grpc", &server.url(SAY), "-d", "@-"];
    let ran = with_stdin(&args, br#"{"text": "a", "delayMs": 1, "every_ms": 2}"#).await;
    assert_eq!(
        (ran.code, ran.json()["text"].as_str()),
        (0, Some("a")),
        "{}",
        ran.stderr
    );
}

#[tokio::test]
async fn an_older_reflection_is_enough() {
    let server = GrpcServer::start(Reflection::V1alpha, []).await;
    let ran = say(&server, &["-d", r#"{"text": "a"}"#]).await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

#[tokio::test]
async fn a_file_stands_in_for_reflection() {
    let server = GrpcServer::start(Reflection::None, []).await;
    let ran = say(&server, &["-d", r#"{"text": "a"}"#, "--proto", PROTO]).await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../mamparo-testkit/proto");
    for typed in ["echo.proto", PROTO] {
        let ran = say(&server, &["--proto", typed, "-I", "src", "-I", folder]).await;
        assert_eq!(ran.code, 0, "{typed}: {}", ran.stderr);
    }
}

#[tokio::test]
async fn metadata_is_sent_and_shown() {
    let server = GrpcServer::reflected().await;
    let ran = say(&server, &["-H", "x-tenant: blue", "-i"]).await;
    assert_eq!(server.seen()[0].get("x-tenant").unwrap(), "blue");
    let agent = server.seen()[0]
        .get("user-agent")
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned();
    assert!(agent.starts_with("mamparo/"), "{agent}");
    let text = String::from_utf8(ran.stdout).unwrap();
    assert!(
        text.starts_with("OK\r\ncontent-type: application/grpc\r\n"),
        "{text}"
    );
    assert!(text.contains("\r\n\r\n{\n"), "{text}");
}

/// Rows P-B13, PB-03.
#[tokio::test]
async fn unavailable_is_sent_again_when_the_server_says_and_the_report_shows_it() {
    let server = GrpcServer::start(Reflection::V1, [pushed_back(250)]).await;
    let ran = say(&server, &["-d", r#"{"text": "a"}"#]).await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.took >= 250 * MS, "{:?}", ran.took);
    let attempts = ran.rows("attempt");
    assert!(attempts[0].ends_with("UNAVAILABLE"), "{}", ran.stderr);
    assert!(attempts[1].ends_with("OK, resend 1"), "{}", ran.stderr);
    assert!(
        ran.rows("wait")[0].ends_with("the server asked for it"),
        "{}",
        ran.stderr
    );
    assert!(ran.last_line().ends_with("; recovered"), "{}", ran.stderr);
    assert_eq!(
        server.seen()[1].get("grpc-previous-rpc-attempts").unwrap(),
        "1"
    );
}

/// Rows P-B12, PB-04.
#[tokio::test]
async fn a_server_that_wants_no_resend_gets_none() {
    let server = GrpcServer::start(Reflection::V1, [pushed_back(-1)]).await;
    let ran = say(&server, &[]).await;
    assert_eq!((ran.code, server.seen().len()), (1, 1), "{}", ran.stderr);
    let line = ran.last_line();
    assert!(
        line.starts_with("UNAVAILABLE \"no shards\" from echo after 1 attempt in "),
        "{line}"
    );
    assert!(ran.stdout.is_empty());
}

#[tokio::test]
async fn one_that_stays_unavailable_is_asked_as_often_as_was_typed() {
    let failures = || [(); 4].map(|()| Status::unavailable("busy"));
    let server = GrpcServer::start(Reflection::V1, failures()).await;
    let ran = say(&server, &["--attempts", "2"]).await;
    assert_eq!((ran.code, server.seen().len()), (1, 2), "{}", ran.stderr);
    assert!(
        ran.last_line().contains("after 2 attempts"),
        "{}",
        ran.stderr
    );
}

#[tokio::test]
async fn another_status_is_an_answer_and_is_said_in_one_line() {
    let failures = [Status::not_found("no such\n\u{1b}[31mitem")];
    let server = GrpcServer::start(Reflection::V1, failures).await;
    let ran = say(&server, &[]).await;
    assert_eq!((ran.code, server.seen().len()), (1, 1));
    let line = ran.last_line();
    assert!(
        line.starts_with("NOT_FOUND \"no such [31mitem\" from echo after 1 attempt"),
        "{line}"
    );
}

/// Rows P-A3, ST-01, DL-02.
#[tokio::test]
async fn a_deadline_that_passes_is_out_of_time() {
    let server = GrpcServer::reflected().await;
    let slow = r#"{"delay_ms": 10000}"#;
    let ran = say(
        &server,
        &["-d", slow, "--deadline", "300ms", "--idempotent"],
    )
    .await;
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert!(ran.took < 3_000 * MS, "{:?}", ran.took);
    let line = ran.last_line();
    assert!(line.starts_with("error: echo: "), "{line}");
    assert!(line.contains("deadline exceeded"), "{line}");
    let told = server.seen()[0]
        .get("grpc-timeout")
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned();
    assert!(told.ends_with(['u', 'n']), "what is left of 300 ms: {told}");
}

#[tokio::test]
async fn the_servers_own_deadline_is_out_of_time_too() {
    let failures = [Status::deadline_exceeded("too slow myself")];
    let server = GrpcServer::start(Reflection::V1, failures).await;
    let ran = say(&server, &["--idempotent"]).await;
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert!(
        ran.last_line().starts_with("DEADLINE_EXCEEDED"),
        "{}",
        ran.stderr
    );
}

#[tokio::test]
async fn a_slow_attempt_is_hedged_on_request() {
    let answers = [Answer::hang(), Answer::echo()];
    let server = grpc::serve(answers).await;
    let more = ["--proto", PROTO, "--hedge", "100ms", "--idempotent"];
    let ran = say_to(&server.url(&format!("/{SAY}")), &more).await;
    assert_eq!(
        (ran.code, server.requests().len()),
        (0, 2),
        "{}",
        ran.stderr
    );
    assert!(ran.last_line().ends_with("; hedged"), "{}", ran.stderr);
}

#[tokio::test]
async fn a_rate_rejects_what_is_too_much() {
    let server = GrpcServer::start(Reflection::V1, [Status::unavailable("busy")]).await;
    let ran = say(&server, &["--rate", "1/m"]).await;
    assert_eq!((ran.code, server.seen().len()), (7, 1), "{}", ran.stderr);
    assert!(
        ran.last_line().contains("rate limit is used up"),
        "{}",
        ran.stderr
    );
}

#[tokio::test]
async fn the_record_has_statuses_by_name() {
    let server = GrpcServer::start(Reflection::V1, [pushed_back(20)]).await;
    let ran = say(&server, &["--json", "-d", r#"{"text": "a"}"#]).await;
    let record = ran.json();
    assert_eq!(ran.code, 0, "{record}");
    assert_eq!(record["outcome"], "success");
    assert_eq!(record["method"], SAY);
    assert_eq!(
        (&record["grpc_status"], &record["grpc_code"]),
        (&json!("OK"), &json!(0))
    );
    assert_eq!(record["message"], json!({"text": "a", "number": 1}));
    let statuses = [0, 1].map(|at| record["attempts"][at]["status"].clone());
    assert_eq!(statuses, ["UNAVAILABLE", "OK"], "{record}");
    assert_eq!(record["attempts"][1]["resend_count"], 1);
    assert_eq!(record["waits"][0]["hinted"], true);

    let server = GrpcServer::start(Reflection::V1, [Status::not_found("no such item")]).await;
    let ran = say(&server, &["--json"]).await;
    let record = ran.json();
    assert_eq!(
        (ran.code, &record["outcome"]),
        (1, &json!("failed_answer")),
        "{record}"
    );
    assert_eq!(record["grpc_status"], "NOT_FOUND");
    assert_eq!(record["grpc_message"], "no such item");
    assert_eq!(record["message"], json!(null));
}

/// Row P-B8: nobody knows whether it was done, and nothing says that it may be done twice.
#[tokio::test]
async fn what_may_have_been_done_is_not_sent_again_unless_the_method_is_idempotent() {
    let server = GrpcServer::reflected().await;
    let slow = ["-d", r#"{"delay_ms": 10000}"#, "--attempt-timeout", "200ms"];
    let ran = say(&server, &slow).await;
    assert_eq!((ran.code, server.seen().len()), (5, 1), "{}", ran.stderr);
    assert!(
        ran.last_line().contains("may have taken effect"),
        "{}",
        ran.stderr
    );
    let ran = say(
        &server,
        &[&slow[..], &["--idempotent", "--attempts", "2"]].concat(),
    )
    .await;
    assert_eq!((ran.code, server.seen().len()), (3, 3), "{}", ran.stderr);
}

#[tokio::test]
async fn a_description_can_say_that_a_method_is_idempotent() {
    let proto = std::fs::read_to_string(PROTO).unwrap();
    let plain = "rpc Say(EchoRequest) returns (EchoReply);";
    let declared =
        "rpc Say(EchoRequest) returns (EchoReply) { option idempotency_level = IDEMPOTENT; }";
    let file = concat!(env!("CARGO_TARGET_TMPDIR"), "/idempotent.proto");
    std::fs::write(file, proto.replace(plain, declared)).unwrap();
    let server = GrpcServer::start(Reflection::None, []).await;
    let slow = [
        "-d",
        r#"{"delay_ms": 10000}"#,
        "--attempt-timeout",
        "100ms",
        "--proto",
        file,
    ];
    let ran = say(&server, &slow).await;
    assert_eq!((ran.code, server.seen().len()), (3, 3), "{}", ran.stderr);
}

/// Rows A6-03, A6-04.
#[tokio::test]
async fn a_service_config_says_what_is_sent_again() {
    let file = concat!(env!("CARGO_TARGET_TMPDIR"), "/service-config.json");
    let config = json!({"methodConfig": [{
        "name": [{"service": "mamparo.test.v1.Echo", "method": "Say"}],
        "retryPolicy": {
            "maxAttempts": 4,
            "initialBackoff": "0.02s",
            "maxBackoff": "1s",
            "backoffMultiplier": 2,
            "retryableStatusCodes": ["ABORTED"],
        },
    }]});
    std::fs::write(file, config.to_string()).unwrap();
    let failures = [(); 3].map(|()| Status::aborted("again"));
    let server = GrpcServer::start(Reflection::V1, failures).await;
    let ran = say(&server, &["--service-config", file]).await;
    assert_eq!((ran.code, server.seen().len()), (0, 4), "{}", ran.stderr);
}

/// Rows GS-02, GS-05, A6-06.
#[tokio::test]
async fn a_page_of_html_and_a_late_status_are_answers() {
    let url = |server: &mamparo_testkit::server::Server| server.url(&format!("/{SAY}"));
    let more = ["--proto", PROTO, "--idempotent"];
    let page = Answer::page(http::StatusCode::OK, "<html>hello</html>");
    let server = grpc::serve(page).await;
    let ran = say_to(&url(&server), &more).await;
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(
        ran.last_line()
            .starts_with("UNKNOWN \"the answer is not gRPC's"),
        "{}",
        ran.stderr
    );
    let server = grpc::serve(Answer::status(Code::Unavailable).late()).await;
    let ran = say_to(&url(&server), &more).await;
    assert_eq!(
        (ran.code, server.requests().len()),
        (1, 1),
        "{}",
        ran.stderr
    );
    assert!(ran.last_line().starts_with("UNAVAILABLE"), "{}", ran.stderr);
}

/// Row RP-01.
#[tokio::test]
async fn one_client_span_of_the_call_is_exported_whatever_it_took() {
    let server = GrpcServer::start(Reflection::V1, [pushed_back(20)]).await;
    let collector = Collector::start().await;
    let ran = say(&server, &["--otlp", &collector.url()]).await;
    assert_eq!((ran.code, server.seen().len()), (0, 2), "{}", ran.stderr);
    assert_eq!(collector.client_spans().len(), 1);
    let metrics = collector.metric_names();
    let duration = "rpc.client.call.duration";
    assert!(metrics.iter().any(|name| name == duration), "{metrics:?}");
}

#[tokio::test]
async fn the_help_and_the_completions_know_it() {
    let help = mamparo(&["call", "--help"]).await;
    let help = String::from_utf8(help.stdout).unwrap();
    let completions = mamparo(&["completions", "bash"]).await;
    let completions = String::from_utf8(completions.stdout).unwrap();
    for option in ["--grpc", "--proto", "--proto-path", "--service-config"] {
        assert!(help.contains(option), "{option}: {help}");
        assert!(completions.contains(option), "{option}");
    }
}
