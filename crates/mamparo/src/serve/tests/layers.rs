//! The layers of a server in one: who is called, and what gRPC's caller is told. Paused time.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use ::http::{HeaderMap, Request, Response};
use axum::routing::get;
use bytes::Bytes;
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use mamparo_core::{BoxError, CallContext, clock};
use mamparo_testkit::body::{Frames, ScriptedBody};
use mamparo_testkit::grpc::{EchoClient, EchoRequest, EchoServer, Echoing};
use mamparo_testkit::service::{Script, Step};
use tonic::service::Routes;
use tower::{Layer, Service, ServiceExt};

use super::super::*;
use crate::load_shed::LoadShedPolicy;
use crate::server_deadline::ServerDeadlinePolicy;

type Question = Request<ScriptedBody>;
type Answer = Response<ScriptedBody>;

const fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

fn question(timeout: Option<&str>) -> Question {
    let request =
        Request::post("/mamparo.test.v1.Echo/Say").header("content-type", "application/grpc");
    let request = match timeout {
        Some(timeout) => request.header("grpc-timeout", timeout),
        None => request,
    };
    request.body(ScriptedBody::empty()).unwrap()
}

fn answer(frames: Frames) -> Answer {
    let answer = Response::builder().header("content-type", "application/grpc");
    answer.body(ScriptedBody::new(frames)).unwrap()
}

/// A handler, and how much of the deadline it has when it is called.
fn handler(step: Step<Answer>) -> Script<Question, Answer, Option<Duration>> {
    Script::noting(|_: &Question| remaining(), [step])
}

fn remaining() -> Option<Duration> {
    let deadline = CallContext::current().deadline();
    deadline.map(|deadline| deadline.remaining(clock::now()))
}

fn status(headers: &HeaderMap) -> Option<&str> {
    headers.get("grpc-status")?.to_str().ok()
}

/// `DL-07`, `GT-06`, `GS-07`.
#[tokio::test]
async fn what_is_expired_on_arrival_is_answered_in_a_head_alone_and_never_handled() {
    for expired in ["0n", "0S", "00000000S"] {
        let inner = handler(Step::hang());
        let service = grpc().layer(inner.clone());
        let answer = service.oneshot(question(Some(expired))).await.unwrap();
        assert_eq!(
            (answer.status().as_u16(), status(answer.headers())),
            (200, Some("4"))
        );
        assert_eq!(answer.headers()["content-type"], "application/grpc");
        assert!(answer.body().is_end_stream());
        assert_eq!(inner.started(), 0, "{expired}");
    }
}

/// Row P-A6.
#[tokio::test(start_paused = true)]
async fn a_handler_that_is_too_slow_is_dropped_and_its_caller_told_so() {
    let inner = handler(Step::hang());
    let service = grpc().layer(inner.clone());
    let start = clock::now();
    let answer = service.oneshot(question(Some("200m"))).await.unwrap();
    assert_eq!(clock::now() - start, millis(200));
    assert_eq!(status(answer.headers()), Some("4"));
    assert_eq!(inner.started(), 1);
    assert_eq!(inner.requests(), [Some(millis(200))]);
}

/// Row P-A7: its head is out, so the status comes in the trailers.
#[tokio::test(start_paused = true)]
async fn a_stream_that_is_too_long_ends_with_trailers_at_the_deadline() {
    let every = |frames: Frames, _| frames.data("frame").wait(millis(90));
    let body = ScriptedBody::new((0..50).fold(Frames::new(), every));
    let watch = body.watch();
    let service = grpc().layer(handler(Step::answer(Response::new(body))));
    let start = clock::now();
    let answer = service.oneshot(question(Some("200m"))).await.unwrap();
    assert_eq!(status(answer.headers()), None);
    let whole = answer.into_body().collect().await.unwrap();
    assert_eq!(clock::now() - start, millis(200));
    assert_eq!(status(whole.trailers().unwrap()), Some("4"));
    assert_eq!(whole.to_bytes(), "frame".repeat(3));
    assert_eq!(
        watch.dropped_at(),
        Some(start + millis(200)),
        "it produces no more"
    );
}

/// `GT-08` to `GT-13`: as Go answers them, where the policy says so.
#[tokio::test]
async fn a_malformed_timeout_is_let_pass_or_refused_as_the_policy_says() {
    let strict = ServerDeadlinePolicy::builder()
        .refuse_malformed()
        .build()
        .unwrap();
    for malformed in ["", "1", "1s", "+5S", "-1S", "123456789S", "1 S"] {
        let fine = || answer(Frames::new().data("fine").trailer("grpc-status", "0"));
        let lenient = grpc().layer(handler(Step::answer(fine())));
        let whole = lenient.oneshot(question(Some(malformed))).await.unwrap();
        assert_eq!(status(whole.headers()), None, "{malformed}");

        let inner = handler(Step::answer(fine()));
        let service = grpc().deadline(strict).layer(inner.clone());
        let answer = service.oneshot(question(Some(malformed))).await.unwrap();
        assert_eq!(
            (status(answer.headers()), inner.started()),
            (Some("13"), 0),
            "{malformed}"
        );
    }
}

/// Says in each frame what remains while it is produced.
struct Telling(ScriptedBody);

impl Body for Telling {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let frame = ready!(Pin::new(&mut self.0).poll_frame(cx));
        let told = |data: Bytes| {
            if data == "?" {
                format!("{:?};", remaining()).into()
            } else {
                data
            }
        };
        Poll::Ready(frame.map(|frame| frame.map(|frame| frame.map_data(told))))
    }
}

/// What a stream calls while it is produced belongs to the request, and has what is left of its time.
#[tokio::test(start_paused = true)]
async fn a_stream_inherits_the_deadline_while_it_is_produced() {
    let frames = Frames::new().data("?").wait(millis(60)).data("?");
    let response = Response::new(Telling(ScriptedBody::new(frames)));
    let inner: Script<Question, Response<Telling>, ()> =
        Script::noting(|_| (), [Step::answer(response)]);
    let answer = grpc().layer(inner).oneshot(question(Some("200m"))).await;
    assert_eq!(
        text(answer.unwrap().into_body()).await,
        "Some(200ms);Some(140ms);"
    );
}

/// `ST-05`.
#[tokio::test(start_paused = true)]
async fn what_is_shed_is_told_in_grpcs_words() {
    let policy = LoadShedPolicy::builder().max_in_flight(1).build().unwrap();
    let inner = handler(Step::hang());
    let mut service = grpc().load_shed(policy).layer(inner.clone());
    let running = service.ready().await.unwrap().call(question(None));
    let shed = service.ready().await.unwrap().call(question(None));
    let shed = shed.await.unwrap();
    assert_eq!(status(shed.headers()), Some("14"));
    assert_eq!(inner.started(), 1);
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn a_server_of_https_answers_both_in_their_own_words() {
    let service = || http().layer(handler(Step::hang()));
    let mut plain = Request::new(ScriptedBody::empty());
    let timeout = "50".parse().unwrap();
    plain.headers_mut().insert("x-request-timeout-ms", timeout);
    let late = service().oneshot(plain).await.unwrap();
    assert_eq!(late.status(), 504);
    assert!(!text(late.into_body()).await.is_empty());
    let late = service().oneshot(question(Some("50m"))).await.unwrap();
    assert_eq!(
        (late.status().as_u16(), status(late.headers())),
        (200, Some("4"))
    );
}

async fn text(body: impl Body<Data = Bytes, Error = BoxError>) -> Bytes {
    body.collect().await.unwrap().to_bytes()
}

/// tonic's services and axum's routes under one set of layers, called by a generated client with no socket between.
#[tokio::test(start_paused = true)]
async fn a_router_that_serves_both_has_one_set_of_layers() {
    let patience = ServerDeadlinePolicy::builder().maximum(millis(100));
    let routes = Routes::new(EchoServer::new(Echoing))
        .into_axum_router()
        .route("/plain", get(std::future::pending::<String>))
        .layer(http().deadline(patience.build().unwrap()));
    let mut client = EchoClient::new(routes.clone());
    let reply = client.say(EchoRequest::text("hola")).await.unwrap();
    assert_eq!(reply.into_inner().text, "hola");
    let slow = EchoRequest::text("hola").after(millis(10_000));
    let status = client.say(slow).await.unwrap_err();
    assert_eq!(status.code(), tonic::Code::DeadlineExceeded);
    let counting = EchoRequest::text("hola").frames(9, millis(30));
    let mut frames = client.count(counting).await.unwrap().into_inner();
    for _ in 0..4 {
        assert!(frames.message().await.unwrap().is_some());
    }
    let status = frames.message().await.unwrap_err();
    assert_eq!(status.code(), tonic::Code::DeadlineExceeded);
    let plain = Request::get("/plain").body(axum::body::Body::empty());
    let late = routes.oneshot(plain.unwrap()).await.unwrap();
    assert_eq!(late.status(), 504);
}
