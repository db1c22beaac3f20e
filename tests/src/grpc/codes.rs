//! Every status, in both directions, through the layers.

use std::time::Duration;

use mamparo::breaker::BreakerPolicy;
use mamparo::retry::RetryPolicy;
use mamparo::stack::Stack;
use mamparo_testkit::grpc::{EchoRequest, Echoing};
use serde_json::json;
use tonic::Code;

use super::ours::{GrpcStack, Ours, client};
use super::peer::{Grpcio, grpcio_calls};

const LONG: Duration = Duration::from_secs(20);

/// Nothing is sent again, and no breaker opens.
fn plain() -> GrpcStack {
    let once = RetryPolicy::builder().max_attempts(1).build().unwrap();
    Stack::grpc("peer")
        .breaker(BreakerPolicy::off())
        .retry(once)
}

#[tokio::test]
async fn every_status_of_grpcio_arrives_as_it_is_wherever_it_comes() {
    let server = Grpcio::start(json!([{}])).await;
    let mut client = client(server.address, &plain());
    for code in 1..=16 {
        let mut failing = EchoRequest::text("a").failing(Code::from_i32(code));
        let early = client.say(failing.clone()).await.unwrap_err();
        failing.failure.as_mut().unwrap().late = true;
        let late = client.say(failing).await.unwrap_err();
        for status in [early, late] {
            assert_eq!(status.code(), Code::from_i32(code));
            assert_eq!(status.message(), format!("asked for {:?}", status.code()));
        }
    }
    client.say(EchoRequest::text("a")).await.unwrap();
}

#[tokio::test]
async fn every_status_of_our_server_arrives_at_grpcio_as_it_is() {
    let ours = Ours::serve(Echoing, LONG).await;
    let call = |code: i32| {
        let failure = json!({"code": code, "message": format!("número {code} 100%")});
        json!({"method": "Say", "requests": [{"text": "a", "failure": failure}]})
    };
    let calls: Vec<_> = (1..=16).map(call).collect();
    let outcomes = grpcio_calls(ours.address, json!(calls)).await;
    for (code, outcome) in (1..).zip(outcomes) {
        assert_eq!(outcome["code"], code, "{outcome}");
        assert_eq!(outcome["details"], format!("número {code} 100%"));
    }
    let call = json!([{"method": "Say", "requests": [{"text": "a"}]}]);
    assert_eq!(grpcio_calls(ours.address, call).await[0]["code"], 0);
}
