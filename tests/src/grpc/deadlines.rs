//! Deadlines that cross between the implementations.

use std::time::Duration;

use futures_util::stream;
use mamparo_core::clock;
use mamparo_testkit::grpc::{Answer, EchoReply, EchoRequest, Echoing, Exchange, ScriptedH2, serve};
use serde_json::json;
use tonic::{Code, Status, Streaming};

use super::ours::{Client, Ours, client_within};
use super::peer::{Grpcio, grpcio_calls};
use super::relay::Relay;

const MS: Duration = Duration::from_millis(1);

/// A call of each kind, which takes a long while.
async fn all_kinds(client: Client) -> Vec<(Code, Duration)> {
    let slow = EchoRequest::text("a").after(5000 * MS);
    let counting = EchoRequest::text("a").frames(100, 50 * MS);
    let [mut a, mut b, mut c, mut d] = [client.clone(), client.clone(), client.clone(), client];
    let many = || {
        stream::iter([
            EchoRequest::text("a"),
            EchoRequest::text("b").after(5000 * MS),
        ])
    };
    let said = ended(async { a.say(slow).await.map(drop) }).await;
    let counted = ended(async { b.count(counting).await?.into_inner().collect_all().await }).await;
    let collected = ended(async { c.collect(many()).await.map(drop) }).await;
    let chatted = ended(async { d.chat(many()).await?.into_inner().collect_all().await }).await;
    vec![said, counted, collected, chatted]
}

async fn ended(call: impl Future<Output = Result<(), Status>>) -> (Code, Duration) {
    let started = clock::now();
    let status = call.await.unwrap_err();
    (status.code(), started.elapsed())
}

trait Frames {
    async fn collect_all(self) -> Result<(), Status>;
}

impl Frames for Streaming<EchoReply> {
    async fn collect_all(mut self) -> Result<(), Status> {
        while self.message().await?.is_some() {}
        Ok(())
    }
}

#[tokio::test]
async fn grpcio_is_told_what_remains_and_no_more() {
    let server = Grpcio::start(json!([{}])).await;
    let mut client = client_within(server.address, 800 * MS);
    client.say(EchoRequest::text("a")).await.unwrap();
    let remaining = server.calls(1).await[0]["remaining"].as_f64().unwrap();
    assert!(remaining > 0.0 && remaining <= 0.8, "{remaining}");
}

// Row P-A1
#[tokio::test]
async fn what_a_client_of_grpcio_leaves_is_passed_on_by_our_server() {
    let last = Grpcio::start(json!([{}])).await;
    let next = client_within(last.address, 10_000 * MS);
    let relay = Relay {
        next,
        pause: 200 * MS,
    };
    let ours = Ours::serve(relay, 60_000 * MS).await;
    let call = json!([{"method": "Say", "requests": [{"text": "a"}], "timeout": 2.0}]);
    let outcome = &grpcio_calls(ours.address, call).await[0];
    assert_eq!(outcome["code"], 0, "{outcome}");
    assert_eq!(outcome["replies"][0]["text"], "a");
    let remaining = last.calls(1).await[0]["remaining"].as_f64().unwrap();
    assert!(remaining > 0.0 && remaining <= 1.8, "{remaining}");
}

#[tokio::test]
async fn our_client_ends_every_kind_of_call_at_its_deadline_and_grpcio_hears_of_it() {
    let server = Grpcio::start(json!([{}])).await;
    let client = client_within(server.address, 200 * MS);
    for (code, took) in all_kinds(client).await {
        assert_eq!(code, Code::DeadlineExceeded);
        assert!(took >= 185 * MS && took < 1500 * MS, "{took:?}");
    }
    for end in server.ends(4).await {
        let after = end["after"].as_f64().unwrap();
        assert!(after < 1.5, "{end}");
    }
}

#[tokio::test]
async fn our_server_tells_grpcio_of_its_limit_for_every_kind_of_call() {
    let ours = Ours::serve(Echoing, 200 * MS).await;
    let slow = json!({"text": "a", "delay_ms": 5000});
    let counting = json!({"text": "a", "frames": 100, "every_ms": 50});
    let call = |method, request| json!({"method": method, "requests": [request], "timeout": 5});
    let calls = json!([
        call("Say", &slow),
        call("Count", &counting),
        call("Collect", &slow),
        call("Chat", &slow)
    ]);
    for outcome in grpcio_calls(ours.address, calls).await {
        assert_eq!(outcome["code"], 4, "{outcome}");
        let elapsed = outcome["elapsed"].as_f64().unwrap();
        assert!((0.15..1.5).contains(&elapsed), "{outcome}");
    }
}

// Row P-A7
#[tokio::test]
async fn a_stream_of_frames_ends_at_the_deadline_and_its_server_stops() {
    let server = serve(Answer::echo()).await;
    let mut client = client_within(server.address(), 200 * MS);
    let counting = EchoRequest::text("a").frames(50, 100 * MS);
    let started = clock::now();
    let mut frames = client.count(counting).await.unwrap().into_inner();
    let mut seen = 0;
    let status = loop {
        match frames.message().await {
            Ok(Some(_)) => seen += 1,
            Ok(None) => panic!("all frames came"),
            Err(status) => break status,
        }
    };
    let took = started.elapsed();
    assert_eq!(status.code(), Code::DeadlineExceeded);
    assert!(took >= 150 * MS && took < 1500 * MS, "{took:?}");
    assert!((1..=3).contains(&seen), "{seen}");
    server.until_idle().await;
}

#[tokio::test]
async fn a_call_that_grpcio_cancels_is_cancelled_wherever_it_has_led() {
    let last = ScriptedH2::start([Exchange::new()]).await;
    let next = client_within(last.address(), 20_000 * MS);
    let relay = Relay { next, pause: MS };
    let ours = Ours::serve(relay, 60_000 * MS).await;
    let call = json!([{"method": "Say", "requests": [{"text": "a"}], "cancel_after": 0.1}]);
    let outcome = &grpcio_calls(ours.address, call).await[0];
    assert_eq!(outcome["code"], 1, "{outcome}");
    last.until_idle().await;
    assert_eq!(
        (last.streams(), last.resets()),
        (1, vec![h2::Reason::CANCEL])
    );
}
