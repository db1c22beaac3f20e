//! What grpcio says of sending a request again, and what of it is done.

use std::time::Duration;

use mamparo::deadline::DeadlinePolicy;
use mamparo::retry::RetryPolicy;
use mamparo::stack::Stack;
use mamparo_core::{Backoff, clock};
use mamparo_testkit::grpc::{Answer, EchoRequest, serve};
use serde_json::{Value, json};
use tonic::Code;

use super::ours::{GrpcStack, client};
use super::peer::{Grpcio, values};

const MS: Duration = Duration::from_millis(1);

/// Waits of the client's own that no test mistakes for the server's.
fn stack(own_wait: Duration) -> GrpcStack {
    let backoff = Backoff::builder().base(own_wait).cap(own_wait).build();
    let retry = RetryPolicy::builder().backoff(backoff.unwrap());
    Stack::grpc("peer")
        .deadline(DeadlinePolicy::within(20_000 * MS).unwrap())
        .retry(retry.build().unwrap())
}

/// Refuses a call, with metadata along with the status.
fn busy(pushback: &[&str]) -> Value {
    let trailing: Vec<_> = pushback
        .iter()
        .map(|value| ("grpc-retry-pushback-ms", value))
        .collect();
    json!({"code": 14, "message": "busy", "trailing": trailing})
}

// Rows P-B13, PB-03, A6-08
#[tokio::test]
async fn a_wait_that_grpcio_asks_for_is_kept_to_exactly() {
    let server = Grpcio::start(json!([busy(&["250"]), {}])).await;
    let mut client = client(server.address, &stack(19_000 * MS));
    let started = clock::now();
    client.say(EchoRequest::text("a")).await.unwrap();
    let took = started.elapsed();
    assert!(took >= 250 * MS && took < 1000 * MS, "{took:?}");
    let calls = server.calls(2).await;
    let numbers = |call: &Value| values(&call["metadata"], "grpc-previous-rpc-attempts").join(",");
    assert_eq!([numbers(&calls[0]), numbers(&calls[1])], ["", "1"]);
}

// Rows P-B13, PB-04, PB-05
#[tokio::test]
async fn a_server_of_grpcio_that_asks_not_to_be_called_again_is_not() {
    // What is garbage to grpcio itself, it sends as the least number there is.
    for pushback in ["-1", "abc", "", "5s"] {
        let server = Grpcio::start(json!([busy(&[pushback]), {}])).await;
        let mut client = client(server.address, &stack(MS));
        let status = client.say(EchoRequest::text("a")).await.unwrap_err();
        assert_eq!(
            (status.code(), status.message()),
            (Code::Unavailable, "busy")
        );
        assert_eq!(server.calls(1).await.len(), 1, "{pushback:?}");
    }
}

// Row PB-09
#[tokio::test]
async fn a_server_that_always_asks_for_a_wait_is_called_no_more_often_than_allowed() {
    let server = Grpcio::start(json!([busy(&["10"])])).await;
    let mut client = client(server.address, &stack(MS));
    let status = client.say(EchoRequest::text("a")).await.unwrap_err();
    assert_eq!(
        (status.code(), status.message()),
        (Code::Unavailable, "busy")
    );
    assert_eq!(server.calls(3).await.len(), 3);
}

// Row PB-12
#[tokio::test]
async fn a_status_after_the_head_is_not_sent_again_whatever_grpcio_asks_for() {
    let mut late = busy(&["10"]);
    late["late"] = json!(true);
    let server = Grpcio::start(json!([late, {}])).await;
    let mut client = client(server.address, &stack(MS));
    let status = client.say(EchoRequest::text("a")).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
    assert_eq!(server.calls(1).await.len(), 1);
}

// Row PB-05: as a server sends them that does not read its own values.
#[tokio::test]
async fn a_server_that_asks_for_nothing_sensible_is_not_called_again() {
    for values in [
        &["-1"][..],
        &["abc"],
        &[""],
        &["5s"],
        &["1.5"],
        &["100", "200"],
    ] {
        let refused = Answer::status(Code::Unavailable);
        let refused = values.iter().fold(refused, |answer, value| {
            answer.header("grpc-retry-pushback-ms", value)
        });
        let server = serve([refused, Answer::echo()]).await;
        let mut client = client(server.address(), &stack(MS));
        let status = client.say(EchoRequest::text("a")).await.unwrap_err();
        assert_eq!(status.code(), Code::Unavailable, "{values:?}");
        assert_eq!(server.requests().len(), 1, "{values:?}");
    }
}
