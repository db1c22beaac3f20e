//! gRPC and HTTP calling each other: each hop has less time than the one before, and all stop together.

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Request as HttpRequest, StatusCode};
use axum::routing::get;
use futures_util::stream::{self, BoxStream, StreamExt};
use hyper_util::client::legacy::connect::HttpConnector;
use mamparo::client::{HyperClient, TonicClient};
use mamparo::deadline::DeadlinePolicy;
use mamparo::rejection::RejectionPolicy;
use mamparo::serve;
use mamparo::stack::Stack;
use mamparo_core::clock;
use mamparo_testkit::grpc::{Echo, EchoClient, EchoReply, EchoRequest, connect};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::sleep;
use tonic::transport::Channel;
use tonic::{Code, Request, Response, Status, Streaming};
use tower::ServiceExt;

use super::endless::{Endless, Runs, remaining, serve};
use crate::served;

/// How long each service works before it asks the next.
const WORK: Duration = Duration::from_millis(50);

/// How often a measurement is made, on a machine that does something else besides: the best one counts. Fewer than
/// open a breaker.
const TRIES: usize = 4;

/// How long after the deadline a handler may still be there.
const GRACE: Duration = Duration::from_millis(50);

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

type GrpcNext = EchoClient<TonicClient<Channel>>;
type HttpNext = HyperClient<HttpConnector, String>;

/// A client whose own patience is longer than any caller's here.
fn grpc_next(address: SocketAddr) -> GrpcNext {
    EchoClient::new(mamparo::client::tonic(
        connect(address),
        &Stack::grpc("next"),
    ))
}

fn http_next() -> HttpNext {
    mamparo::client::hyper(HttpConnector::new(), &Stack::http("next"))
}

fn client_within(address: SocketAddr, limit: Duration) -> GrpcNext {
    let stack = Stack::grpc("first").deadline(DeadlinePolicy::within(limit).unwrap());
    EchoClient::new(mamparo::client::tonic(connect(address), &stack))
}

/// Asks an HTTP service for what it answers; for `Count`, once a frame.
#[derive(Clone)]
struct OverHttp {
    runs: Runs,
    next: HttpNext,
    address: SocketAddr,
}

impl OverHttp {
    async fn ask(self) -> Result<EchoReply, Status> {
        sleep(WORK).await;
        let request = HttpRequest::get(format!("http://{}/", self.address)).body(String::new());
        // What the call's error is to gRPC is found in it.
        let answer = self
            .next
            .oneshot(request.unwrap())
            .await
            .map_err(Status::from_error)?;
        if answer.status() == StatusCode::GATEWAY_TIMEOUT {
            return Err(Status::deadline_exceeded("the next service was too slow"));
        }
        let body = axum::body::to_bytes(Body::new(answer.into_body()), 1024).await;
        let text = String::from_utf8(body.unwrap().into()).unwrap();
        Ok(EchoReply { text, number: 1 })
    }
}

#[tonic::async_trait]
impl Echo for OverHttp {
    type CountStream = BoxStream<'static, Result<EchoReply, Status>>;
    type ChatStream = Self::CountStream;

    async fn say(&self, _: Request<EchoRequest>) -> Result<Response<EchoReply>, Status> {
        let _run = self.runs.begin();
        Ok(Response::new(self.clone().ask().await?))
    }

    async fn count(
        &self,
        request: Request<EchoRequest>,
    ) -> Result<Response<Self::CountStream>, Status> {
        let (run, service) = (self.runs.begin(), self.clone());
        let frames = stream::iter(0..request.into_inner().frames).then(move |_| {
            let _lives_as_long = &run;
            service.clone().ask()
        });
        Ok(Response::new(frames.boxed()))
    }

    async fn collect(
        &self,
        _: Request<Streaming<EchoRequest>>,
    ) -> Result<Response<EchoReply>, Status> {
        Err(Status::unimplemented("of no use here"))
    }

    async fn chat(
        &self,
        _: Request<Streaming<EchoRequest>>,
    ) -> Result<Response<Self::ChatStream>, Status> {
        Err(Status::unimplemented("of no use here"))
    }
}

/// An HTTP service that says what remains, and what it was told: in microseconds, and in its header.
fn telling() -> Router {
    let tell = get(async |headers: HeaderMap| {
        let told = headers.contains_key("grpc-timeout");
        format!("{} {told}", remaining().unwrap().as_micros())
    });
    Router::new().route("/", tell).layer(serve::http())
}

/// An HTTP service that asks a gRPC service, and answers with the end of that.
fn over_grpc(runs: Runs, next: GrpcNext) -> Router {
    let ask = get(async move || {
        let _run = runs.begin();
        sleep(WORK).await;
        match next.clone().say(EchoRequest::text("a")).await {
            Ok(reply) => axum::response::Response::new(Body::from(reply.into_inner().text)),
            Err(status) => RejectionPolicy::default().answer(&status).map(Body::from),
        }
    });
    Router::new().route("/", ask).layer(serve::http())
}

fn told(text: &str) -> Duration {
    let (micros, grpc) = text.split_once(' ').unwrap();
    assert_eq!(grpc, "false", "HTTP is told in its own header");
    Duration::from_micros(micros.parse().unwrap())
}

/// Rows P-A1 and P-A7, `DL-01`, `DL-03`: unary, and each frame of a stream while it is produced.
#[tokio::test]
async fn an_http_dependency_of_a_grpc_server_gets_what_is_left_at_that_moment() {
    let (runs, _heard) = Runs::new();
    let service = OverHttp {
        runs,
        next: http_next(),
        address: served::serve(telling()).await,
    };
    let address = serve(service, serve::grpc()).await;
    let mut client = client_within(address, ms(2_000));
    let reply = client.say(EchoRequest::text("a")).await.unwrap();
    let left = told(&reply.into_inner().text);
    assert!(left > WORK && left <= ms(2_000) - WORK, "{left:?}");

    let counting = EchoRequest::text("a").frames(4, Duration::ZERO);
    let frames = client.count(counting).await.unwrap().into_inner();
    let left: Vec<_> = frames
        .map(|frame| told(&frame.unwrap().text))
        .collect()
        .await;
    assert_eq!(left.len(), 4);
    assert!(
        left.windows(2).all(|two| two[1] <= two[0] - WORK),
        "{left:?}"
    );
}

/// Rows P-A1 and P-A6: gRPC, HTTP, gRPC.
#[tokio::test]
async fn a_chain_of_both_has_less_time_at_each_hop_and_stops_at_the_deadline() {
    let ((last, mut at_last), (middle, mut at_middle), (first, mut at_first)) =
        (Runs::new(), Runs::new(), Runs::new());
    let last = serve(Endless(last), serve::grpc()).await;
    let middle = served::serve(over_grpc(middle, grpc_next(last))).await;
    let first = OverHttp {
        runs: first,
        next: http_next(),
        address: middle,
    };
    let mut client = client_within(serve(first, serve::grpc()).await, ms(400));
    let mut best = Duration::MAX;
    for _ in 0..TRIES {
        let start = clock::now();
        let status = client.say(EchoRequest::text("a")).await.unwrap_err();
        assert_eq!(status.code(), Code::DeadlineExceeded, "{status:?}");
        let (mut left, mut gone) = (ms(400), start);
        for run in [&mut at_first, &mut at_middle, &mut at_last] {
            let run = run.recv().await.unwrap();
            let remaining = run.remaining.unwrap();
            assert!(remaining <= left, "{remaining:?} of at most {left:?}");
            assert!(remaining > WORK, "{remaining:?}");
            left = remaining - WORK;
            gone = gone.max(run.gone().await);
        }
        best = best.min(gone - start);
    }
    assert!(best <= ms(400) + GRACE, "stopped after {best:?}");
}

/// Row P-A1: the reverse, from HTTP's header into gRPC's.
#[tokio::test]
async fn a_grpc_dependency_of_an_http_server_gets_what_is_left_and_stops_with_it() {
    let ((last, mut at_last), (first, mut at_first)) = (Runs::new(), Runs::new());
    let last = serve(Endless(last), serve::grpc()).await;
    let first = served::serve(over_grpc(first, grpc_next(last))).await;
    let mut best = Duration::MAX;
    for _ in 0..TRIES {
        let start = clock::now();
        let head = "GET / HTTP/1.1\r\nx-request-timeout-ms: 400";
        let answer = served::exchange(first, head).await;
        assert!(answer.starts_with("HTTP/1.1 504 "), "{answer}");
        let (near, far) = (
            at_first.recv().await.unwrap(),
            at_last.recv().await.unwrap(),
        );
        assert!(far.remaining.unwrap() <= near.remaining.unwrap() - WORK);
        let lived = near.gone().await.max(far.gone().await) - start;
        assert!(lived >= ms(300), "stopped after {lived:?}, too early");
        best = best.min(lived);
    }
    assert!(best <= ms(400) + GRACE, "stopped after {best:?}");
}

/// As a caller that gives up ends its socket, so every hop's stream is reset.
#[tokio::test]
async fn a_chain_of_both_stops_when_its_caller_gives_up() {
    let ((last, mut at_last), (first, mut at_first)) = (Runs::new(), Runs::new());
    let last = serve(Endless(last), serve::grpc()).await;
    let first = served::serve(over_grpc(first, grpc_next(last))).await;
    let mut socket = TcpStream::connect(first).await.unwrap();
    let request = b"GET / HTTP/1.1\r\nhost: a\r\nx-request-timeout-ms: 30000\r\n\r\n";
    socket.write_all(request).await.unwrap();
    let (near, far) = (
        at_first.recv().await.unwrap(),
        at_last.recv().await.unwrap(),
    );
    let gave_up = clock::now();
    drop(socket);
    let gone = near.gone().await.max(far.gone().await);
    let after = gone.saturating_duration_since(gave_up);
    assert!(after <= 4 * GRACE, "stopped {after:?} after");
}
