//! tonic's channel and generated clients, in the whole stack.

use std::time::Duration;

use ::tonic::body::Body;
use ::tonic::metadata::MetadataValue;
use ::tonic::transport::Channel;
use ::tonic::{Code, Request, Status, TimeoutExpired};
use mamparo_core::grpc::Codes;
use mamparo_core::{BoxError, Reason, Rejection, Reserve, RetryError, TransportError};
use mamparo_testkit::grpc::{self, Answer, Answers, EchoClient, EchoRequest};
use mamparo_testkit::server::Server;

use crate::attempt_timeout::AttemptPolicy;
use crate::breaker::BreakerPolicy;
use crate::client::{TonicClient, tonic};
use crate::deadline::DeadlinePolicy;
use crate::grpc::{MethodConfig, RetryPlan, ServiceConfig};
use crate::retry::RetryPolicy;
use crate::stack::Stack;
use tower::service_fn;
use tower_layer::Identity;

type GrpcStack = Stack<Identity, Identity, Identity, mamparo_core::grpc::Grpc>;

fn stack() -> GrpcStack {
    let quick = mamparo_core::Backoff::builder()
        .base(Duration::from_millis(1))
        .cap(Duration::from_millis(2));
    let retry = RetryPolicy::builder().backoff(quick.build().unwrap());
    Stack::grpc("peer").retry(retry.build().unwrap())
}

fn client(server: &Server, stack: &GrpcStack) -> EchoClient<TonicClient<Channel>> {
    EchoClient::new(tonic(grpc::connect(server.address()), stack))
}

async fn serve(answers: impl Into<Answers>) -> Server {
    grpc::serve(answers).await
}

fn error_of(status: Status) -> BoxError {
    status.into()
}

/// `GE-*`, A6-08: numbered, each with what remains.
#[tokio::test]
async fn an_unavailable_head_is_sent_again_and_each_attempt_is_numbered_and_bounded() {
    let server = serve([Answer::status(Code::Unavailable), Answer::echo()]).await;
    let reply = client(&server, &stack()).say(EchoRequest::text("a")).await;
    assert_eq!(reply.unwrap().into_inner().text, "a");
    let seen = server.requests();
    let header = |at: usize, name: &str| {
        let value = seen[at].headers.get(name);
        value.map(|value| value.to_str().unwrap().to_owned())
    };
    assert_eq!(header(0, "grpc-previous-rpc-attempts"), None);
    assert_eq!(
        header(1, "grpc-previous-rpc-attempts").as_deref(),
        Some("1")
    );
    for at in [0, 1] {
        assert!(header(at, "grpc-timeout").is_some_and(|told| told.ends_with('u')));
        assert_eq!(header(at, "x-request-timeout-ms"), None);
    }
}

/// A6-06: a head commits the call, whatever its trailers say.
#[tokio::test]
async fn a_status_that_comes_late_is_not_sent_again() {
    let server = serve(Answer::status(Code::Unavailable).late()).await;
    let status = client(&server, &stack()).say(EchoRequest::text("a")).await;
    assert_eq!(status.unwrap_err().code(), Code::Unavailable);
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn what_an_interceptor_adds_is_on_every_attempt() {
    let server = serve([Answer::status(Code::Unavailable), Answer::echo()]).await;
    let service = tonic(grpc::connect(server.address()), &stack());
    let mut client = EchoClient::with_interceptor(service, |mut request: Request<()>| {
        let token = MetadataValue::from_static("secret");
        request.metadata_mut().insert("authorization", token);
        Ok(request)
    });
    client.say(EchoRequest::text("a")).await.unwrap();
    let seen = server.requests();
    assert!(
        seen.iter()
            .all(|request| request.headers["authorization"] == "secret")
    );
    assert_eq!(seen.len(), 2);
}

#[tokio::test]
async fn every_code_of_the_peer_is_the_callers() {
    for number in 1..=16 {
        let code = Code::from_i32(number);
        let server = serve(Answer::status(code)).await;
        let status = client(&server, &stack()).say(EchoRequest::text("a")).await;
        assert_eq!(status.unwrap_err().code(), code);
        let sent = if code == Code::Unavailable { 3 } else { 1 };
        assert_eq!(server.requests().len(), sent, "{code:?}");
    }
}

/// Law 9: the trailers of a stream are what a breaker hears.
#[tokio::test]
async fn a_breaker_opens_on_late_failures_and_its_rejection_is_a_status() {
    let breaker = BreakerPolicy::builder()
        .consecutive_failures(2)
        .build()
        .unwrap();
    let server = serve(Answer::status(Code::Unavailable).late()).await;
    let mut client = client(&server, &stack().breaker(breaker));
    for _ in 0..2 {
        client.say(EchoRequest::text("a")).await.unwrap_err();
    }
    let status = client.say(EchoRequest::text("a")).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
    assert!(status.metadata().contains_key("grpc-retry-pushback-ms"));
    let error = error_of(status);
    assert!(Rejection::of(&*error).is_some_and(Rejection::is_breaker_open));
    assert_eq!(server.requests().len(), 2);
}

/// P-A7, seen by the caller.
#[tokio::test]
async fn a_stream_is_cut_at_the_deadline() {
    let deadline = DeadlinePolicy::within(Duration::from_millis(200)).unwrap();
    let server = serve(Answer::echo()).await;
    let request = EchoRequest::text("a").frames(50, Duration::from_millis(50));
    let begun = mamparo_core::clock::now();
    let mut client = client(&server, &stack().deadline(deadline));
    let mut frames = client.count(request).await.unwrap().into_inner();
    let mut seen = 0;
    let status = loop {
        match frames.message().await {
            Ok(frame) => seen += u32::from(frame.is_some()),
            Err(status) => break status,
        }
    };
    assert_eq!(status.code(), Code::DeadlineExceeded);
    assert!((1..5).contains(&seen), "{seen} frames");
    assert!(begun.elapsed() < Duration::from_millis(400));
}

#[tokio::test]
async fn a_dead_peer_is_unavailable_and_was_sent_nothing() {
    let server = serve(Answer::echo()).await;
    let address = server.address();
    server.stop().await;
    let mut client = EchoClient::new(tonic(grpc::connect(address), &stack()));
    let status = client.say(EchoRequest::text("a")).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
    let error = error_of(status);
    assert_eq!(RetryError::of(&*error).unwrap().ending().attempts(), 3);
    assert!(TransportError::of(&*error).is_some());
}

/// tonic alone panics on these.
#[tokio::test]
async fn details_that_cannot_be_read_are_dropped() {
    let broken = || Answer::status(Code::NotFound).header("grpc-status-details-bin", "!!!");
    for answer in [broken(), broken().late()] {
        let server = serve(answer).await;
        let status = client(&server, &stack()).say(EchoRequest::text("a")).await;
        let status = status.unwrap_err();
        assert_eq!((status.code(), status.details()), (Code::NotFound, &[][..]));
    }
    let sound = Answer::status(Code::NotFound).header("grpc-status-details-bin", "AQID");
    let server = serve(sound).await;
    let status = client(&server, &stack()).say(EchoRequest::text("a")).await;
    assert_eq!(status.unwrap_err().details(), [1, 2, 3]);
}

/// GS-05: a page is no answer, and its status stands for a code; what was done behind it nobody knows.
#[tokio::test]
async fn a_page_in_the_place_of_an_answer_is_a_clear_status() {
    let pages = [
        (200, Code::Unknown, 1),
        (404, Code::Unimplemented, 1),
        (429, Code::Unavailable, 1),
        (502, Code::Unavailable, 1),
        (503, Code::Unavailable, 1),
        (504, Code::Unavailable, 1),
    ];
    for (status, code, sent) in pages {
        let page = Answer::page(status.try_into().unwrap(), "<html>");
        let server = serve(page).await;
        let answer = client(&server, &stack()).say(EchoRequest::text("a")).await;
        assert_eq!(answer.unwrap_err().code(), code, "{status}");
        assert_eq!(server.requests().len(), sent, "{status}");
    }
}

/// Row P-B8: whoever lists UNAVAILABLE for a method says that it bears a second time.
#[tokio::test]
async fn a_page_is_no_answer_to_resend_after_unless_the_method_lists_it() {
    let server = serve([
        Answer::page(http::StatusCode::GATEWAY_TIMEOUT, "<html>"),
        Answer::echo(),
    ])
    .await;
    let backoff = mamparo_core::Backoff::builder()
        .base(Duration::from_millis(1))
        .build();
    let plan = RetryPlan::new(2, backoff.unwrap(), Codes::UNAVAILABLE).unwrap();
    let config = ServiceConfig::builder().all(MethodConfig::new().retried(plan));
    let stack = stack().service_config(&config.build().unwrap());
    client(&server, &stack)
        .say(EchoRequest::text("a"))
        .await
        .unwrap();
    assert_eq!(server.requests().len(), 2);
}

/// GS-04: "must not error". tonic alone calls the status unknown.
#[tokio::test]
async fn a_text_that_is_no_utf_8_leaves_the_status_as_it_is() {
    let broken = || Answer::raw(&[("grpc-status", "5"), ("grpc-message", "a%FFb")]);
    for answer in [broken(), broken().late()] {
        let server = serve(answer).await;
        let status = client(&server, &stack()).say(EchoRequest::text("a")).await;
        let status = status.unwrap_err();
        assert_eq!(
            (status.code(), status.message()),
            (Code::NotFound, "a\u{fffd}b")
        );
    }
}

/// A status that a layer around the channel makes is judged as one of a server's: a client's fault opens no breaker.
#[tokio::test]
async fn what_stands_around_the_channel_may_fail_with_a_status() {
    let channel = service_fn(|_: http::Request<Body>| async {
        Err::<http::Response<Body>, _>(Status::unauthenticated("no token"))
    });
    let mut client = EchoClient::new(tonic(channel, &stack()));
    for _ in 0..10 {
        let status = client.say(EchoRequest::text("a")).await.unwrap_err();
        assert_eq!(status.code(), Code::Unauthenticated, "{status:?}");
    }
}

#[tokio::test]
async fn a_stack_for_grpc_says_what_it_does() {
    let text = Stack::grpc("peer").to_string();
    assert!(
        text.starts_with("peer, outermost first:\n  deadline: 10s"),
        "{text}"
    );
}

/// `ST-04`: tonic's own timer calls it cancelled, whichever limit it was set by.
#[tokio::test(start_paused = true)]
async fn the_channels_own_timer_is_the_limit_that_it_was_set_by() {
    let ms = Duration::from_millis;
    let cases = [
        (500, 200, 199, Reason::DeadlineExceeded),
        (100, 1_000, 99, Reason::AttemptTimedOut),
        (500, 200, 50, Reason::AttemptTimedOut),
    ];
    for (attempt, deadline, after, reason) in cases {
        let channel = service_fn(move |_: http::Request<Body>| async move {
            tokio::time::sleep(ms(after)).await;
            Err::<http::Response<Body>, _>(TimeoutExpired(()))
        });
        let deadline = DeadlinePolicy::within(ms(deadline)).unwrap();
        let attempt = AttemptPolicy::builder().timeout(ms(attempt));
        let stack = stack()
            .deadline(deadline.reserve(Reserve::NONE).unwrap())
            .attempt(attempt.build().unwrap());
        let mut client = EchoClient::new(tonic(channel, &stack));
        let status = client.say(EchoRequest::text("a")).await.unwrap_err();
        assert_eq!(status.code(), Code::DeadlineExceeded, "{status:?}");
        let rejection = Rejection::of(&status).unwrap();
        assert_eq!((rejection.reason(), rejection.sent()), (reason, true));
    }
}
