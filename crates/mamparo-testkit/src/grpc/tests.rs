//! The generated service, called by its generated client.

use super::{Answer, EchoClient, EchoReply, EchoRequest, Exchange, ScriptedH2, connect, serve};
use futures_util::stream::{self, StreamExt};
use http::StatusCode;
use std::time::Duration;
use tonic::Code;

#[tokio::test]
async fn all_four_kinds_of_calls_are_answered() {
    let server = serve(Answer::echo()).await;
    let mut client = EchoClient::new(connect(server.address()));
    let texts = || stream::iter(["a", "b"].map(EchoRequest::text));

    let said = client.say(EchoRequest::text("a")).await.unwrap();
    assert_eq!(said.into_inner().text, "a");

    let counted = EchoRequest::text("a").frames(3, Duration::from_millis(1));
    let frames = client.count(counted).await.unwrap().into_inner();
    let numbers: Vec<u32> = frames.map(|frame| frame.unwrap().number).collect().await;
    assert_eq!(numbers, [1, 2, 3]);

    let collected = client.collect(texts()).await.unwrap().into_inner();
    assert_eq!((collected.text.as_str(), collected.number), ("ab", 2));

    let chat = client.chat(texts()).await.unwrap().into_inner();
    let replies: Vec<String> = chat.map(|reply| reply.unwrap().text).collect().await;
    assert_eq!(replies, ["a", "b"]);
    assert_eq!(
        server.requests()[3].uri.path(),
        "/mamparo.test.v1.Echo/Chat"
    );
}

#[tokio::test]
async fn a_request_gets_the_status_that_it_asks_for() {
    let server = serve(Answer::echo()).await;
    let mut client = EchoClient::new(connect(server.address()));
    let failing = EchoRequest::text("a").failing(Code::DataLoss);
    let status = client.say(failing.clone()).await.unwrap_err();
    assert_eq!(status.code(), Code::DataLoss);

    let counted = failing.frames(1, Duration::ZERO);
    let mut frames = client.count(counted).await.unwrap().into_inner();
    assert!(frames.message().await.unwrap().is_some());
    assert_eq!(frames.message().await.unwrap_err().code(), Code::DataLoss);
}

#[tokio::test]
async fn a_status_comes_in_the_head_or_late_with_what_goes_along() {
    let busy = Answer::status(Code::Unavailable).header("grpc-retry-pushback-ms", "250");
    let server = serve([busy.clone(), busy.late()]).await;
    let mut client = EchoClient::new(connect(server.address()));
    let counted = || EchoRequest::text("a").frames(1, Duration::ZERO);

    let early = client.count(counted()).await.unwrap_err();
    assert_eq!(early.code(), Code::Unavailable);
    assert_eq!(
        early.metadata().get("grpc-retry-pushback-ms").unwrap(),
        "250"
    );

    let mut frames = client.count(counted()).await.unwrap().into_inner();
    let late = frames.message().await.unwrap_err();
    assert_eq!(late.code(), Code::Unavailable);
    assert_eq!(late.message(), "scripted Unavailable");
}

#[tokio::test]
async fn what_is_no_grpc_comes_as_it_is() {
    let raw = Answer::raw(&[("grpc-status", "abc"), ("grpc-message", "100%")]);
    let page = Answer::page(StatusCode::BAD_GATEWAY, "<p>oops</p>");
    let server = serve([raw, page]).await;
    let mut client = EchoClient::new(connect(server.address()));
    let status = client.say(EchoRequest::text("a")).await.unwrap_err();
    assert_eq!(status.code(), Code::Unknown);
    let status = client.say(EchoRequest::text("a")).await.unwrap_err();
    assert_eq!(status.code(), Code::Internal); // tonic takes the page for a message
}

#[tokio::test]
async fn a_call_that_its_client_drops_is_seen_to_stop() {
    let server = serve([
        Answer::hang(),
        Answer::echo().after(Duration::from_millis(5)),
    ])
    .await;
    let mut client = EchoClient::new(connect(server.address()));
    let call = client.say(EchoRequest::text("a"));
    let cut = tokio::time::timeout(Duration::from_millis(50), call).await;
    assert!(cut.is_err());
    server.until_idle().await;
    assert!(server.requests()[0].stopped_at.is_some());
    client.say(EchoRequest::text("a")).await.unwrap();
}

#[tokio::test]
async fn what_a_script_sends_frame_by_frame_arrives() {
    let reply = EchoReply {
        text: "x".repeat(200),
        number: 1,
    };
    let long = "y".repeat(200);
    let whole = Exchange::new()
        .head()
        .message(&reply)
        .trailers(&[("grpc-status", "0")]);
    let failed = Exchange::new().trailers_only(&[("grpc-status", "5"), ("grpc-message", &long)]);
    let server = ScriptedH2::start([whole, failed]).await;
    let mut client = EchoClient::new(connect(server.address()));
    let said = client.say(EchoRequest::text("a")).await.unwrap();
    assert_eq!(said.into_inner(), reply);
    let status = client.say(EchoRequest::text("a")).await.unwrap_err();
    assert_eq!((status.code(), status.message()), (Code::NotFound, &*long));
    assert_eq!((server.connections(), server.open()), (1, 0));
}

#[tokio::test]
async fn a_connection_that_takes_no_more_is_left_for_another() {
    let server = ScriptedH2::start([
        Exchange::new().go_away(),
        Exchange::new().trailers_only(&[("grpc-status", "5")]),
    ])
    .await;
    let mut client = EchoClient::new(connect(server.address()));
    let codes = [
        client.say(EchoRequest::text("a")).await.unwrap_err().code(),
        client.say(EchoRequest::text("a")).await.unwrap_err().code(),
    ];
    assert_eq!(codes[1], Code::NotFound);
    assert_eq!((server.connections(), server.streams()), (2, 2));
}

#[tokio::test]
async fn a_client_that_gives_a_stream_up_is_seen_to_reset_it() {
    let server = ScriptedH2::start([Exchange::new().early().head()]).await;
    let mut client = EchoClient::new(connect(server.address()));
    let frames = client.count(EchoRequest::text("a")).await.unwrap();
    assert_eq!(server.open(), 1);
    drop(frames);
    server.until_idle().await;
    assert_eq!(server.resets(), [h2::Reason::CANCEL]);
}
