//! Servers of grpcio that send a head before they fail, with and without a peek at what follows it.

use std::time::Duration;

use mamparo::peek::PeekLayer;
use mamparo::retry::RetryPolicy;
use mamparo::stack::Stack;
use mamparo_core::{Backoff, clock};
use mamparo_testkit::grpc::EchoRequest;
use serde_json::{Value, json};
use tonic::Code;

use super::ours::{GrpcStack, client};
use super::peer::Grpcio;

const MS: Duration = Duration::from_millis(1);

fn stack(peek: PeekLayer) -> GrpcStack {
    let backoff = Backoff::builder().base(MS).cap(MS).build().unwrap();
    let retry = RetryPolicy::builder().backoff(backoff).build().unwrap();
    Stack::grpc("peer").retry(retry).peek(peek)
}

/// Fails a call after its head.
fn late(pushback: &str) -> Value {
    json!({"code": 14, "message": "busy", "late": true, "trailing": [["grpc-retry-pushback-ms", pushback]]})
}

// Rows P-B7, A6-06
#[tokio::test]
async fn a_failure_of_grpcio_s_after_an_empty_head_is_sent_again_only_with_a_peek() {
    for (peek, calls) in [(PeekLayer::new(), 2), (PeekLayer::off(), 1)] {
        let server = Grpcio::start(json!([late("10"), {}])).await;
        let mut client = client(server.address, &stack(peek));
        let said = client.say(EchoRequest::text("a")).await;
        assert_eq!(said.is_ok(), calls == 2, "{said:?}");
        assert_eq!(server.calls(calls).await.len(), calls);
    }
}

// Rows P-B7, PB-03, PB-04
#[tokio::test]
async fn what_grpcio_asks_for_after_an_empty_head_is_obeyed_with_a_peek() {
    let server = Grpcio::start(json!([late("250"), {}])).await;
    let mut waiting = client(server.address, &stack(PeekLayer::new()));
    let started = clock::now();
    waiting.say(EchoRequest::text("a")).await.unwrap();
    assert!(started.elapsed() >= 250 * MS, "{:?}", started.elapsed());

    let server = Grpcio::start(json!([late("-1"), {}])).await;
    let mut stopped = client(server.address, &stack(PeekLayer::new()));
    let status = stopped.say(EchoRequest::text("a")).await.unwrap_err();
    assert_eq!(
        (status.code(), status.message()),
        (Code::Unavailable, "busy")
    );
    assert_eq!(server.calls(1).await.len(), 1);
}

// Row P-B7
#[tokio::test]
async fn a_failure_of_grpcio_s_after_a_message_is_the_callers_with_a_peek_too() {
    let server = Grpcio::start(json!([{}])).await;
    let mut client = client(server.address, &stack(PeekLayer::new()));
    let counting = EchoRequest::text("a")
        .frames(2, MS)
        .failing(Code::Unavailable);
    let mut frames = client.count(counting).await.unwrap().into_inner();
    for number in 1..=2 {
        assert_eq!(frames.message().await.unwrap().unwrap().number, number);
    }
    assert_eq!(
        frames.message().await.unwrap_err().code(),
        Code::Unavailable
    );
    assert_eq!(server.calls(1).await.len(), 1);
}
