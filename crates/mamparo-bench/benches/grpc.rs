//! Real RPCs over a real socket: tonic's client to tonic's server, in one process, on two threads.

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::mpsc::{self, Sender};
use std::time::Duration;
use std::{io, thread};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body as HttpBody;
use mamparo::breaker::BreakerPolicy;
use mamparo::client::tonic as around;
use mamparo::load_shed::LoadShedPolicy;
use mamparo::rate_limit::RateLimitPolicy;
use mamparo::stack::Stack;
use mamparo_core::grpc::Grpc;
use mamparo_core::{BoxError, clock};
use mamparo_telemetry::attempt::GrpcSend;
use mamparo_telemetry::operation::GrpcCall;
use mamparo_telemetry::{AttemptLayer, OperationLayer};
use mamparo_testkit::grpc::{EchoClient, EchoRequest, EchoServer, Echoing, connect};
use tokio::runtime::{Builder, Runtime};
use tokio::task::LocalSet;
use tonic::body::Body;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tower::Service;
use tower::layer::util::Identity;

use crate::cases::{Case, Group, latency};

const IN_FLIGHT: u64 = 64;

/// More calls than are in flight.
const MOST: usize = 1_000;

const NAME: &str = "echo";

/// The bare client, the same again (which shows the noise), and stacks around it.
pub(crate) fn group() -> Result<Group, BoxError> {
    let address = serve()?;
    let bare = |name| case(name, address, |address| Ok(connect(address)));
    Ok(Group {
        name: "gRPC over loopback",
        cases: vec![
            bare("tonic client"),
            bare("tonic client again"),
            case("our stack around tonic", address, |address| {
                Ok(around(connect(address), &Stack::grpc(NAME)))
            }),
            case("every layer of ours around tonic", address, |address| {
                Ok(around(connect(address), &every_layer()?))
            }),
            case(
                "every layer around tonic, and telemetry",
                address,
                |address| Ok(around(connect(address), &with_telemetry()?)),
            ),
        ],
    })
}

/// The stack with all that is off by default, but a hedge and a fallback.
fn every_layer() -> Result<Stack<Identity, Identity, Identity, Grpc>, BoxError> {
    let shed = LoadShedPolicy::builder().max_in_flight(MOST);
    let breaker = BreakerPolicy::builder().failure_rate(0.5);
    let rate = RateLimitPolicy::per(Duration::from_secs(1), 1_000_000);
    Ok(Stack::grpc(NAME)
        .load_shed(shed.build()?)
        .operation_breaker(BreakerPolicy::default())
        .breaker(breaker.build()?)
        .rate_limit(rate.build()?))
}

type Recorded = Stack<OperationLayer<Grpc, GrpcCall>, AttemptLayer<Grpc, GrpcSend>, Identity, Grpc>;

/// With telemetry, and nobody who wants it.
fn with_telemetry() -> Result<Recorded, BoxError> {
    let operation = OperationLayer::grpc(NAME);
    Ok(every_layer()?.telemetry(operation, AttemptLayer::grpc(NAME)))
}

fn case<S, B>(
    name: &'static str,
    address: SocketAddr,
    client: fn(SocketAddr) -> Result<S, BoxError>,
) -> Case
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + 'static,
    S::Error: Into<BoxError>,
    B: HttpBody<Data = Bytes, Error: Into<BoxError> + Send> + Send + 'static,
{
    Case::new(name, size_of::<S::Future>(), move || {
        let runtime = runtime()?;
        let inside = runtime.enter();
        let client = EchoClient::new(client(address)?);
        drop(inside);
        let work = move |calls| {
            let left = Rc::new(Cell::new(calls));
            let callers = LocalSet::new();
            for _ in 0..IN_FLIGHT {
                callers.spawn_local(keep_calling(client.clone(), Rc::clone(&left)));
            }
            runtime.block_on(callers);
        };
        Ok(Box::new(work))
    })
}

#[expect(
    clippy::print_stderr,
    reason = "figures with failed calls in them mean nothing"
)]
/// Makes one call after the other, as long as some are `left`.
async fn keep_calling<S, B>(mut client: EchoClient<S>, left: Rc<Cell<u64>>)
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Error: Into<BoxError>,
    B: HttpBody<Data = Bytes, Error: Into<BoxError> + Send> + Send + 'static,
{
    while let Some(rest) = left.get().checked_sub(1) {
        left.set(rest);
        let started = clock::now();
        if let Err(status) = client.say(EchoRequest::text("hola")).await {
            eprintln!("a call over loopback failed: {status}");
        }
        latency::note(started.elapsed());
    }
}

/// Starts a server on a thread of its own, which lives as long as the process.
fn serve() -> Result<SocketAddr, BoxError> {
    let (started, address) = mpsc::channel();
    thread::spawn(move || runtime()?.block_on(accept(&started)));
    Ok(address.recv()?)
}

async fn accept(started: &Sender<SocketAddr>) -> Result<(), BoxError> {
    let incoming = TcpIncoming::bind(([127, 0, 0, 1], 0).into())?.with_nodelay(Some(true));
    if started.send(incoming.local_addr()?).is_err() {
        return Ok(()); // nobody waits for it any more
    }
    let server = Server::builder().add_service(EchoServer::new(Echoing));
    Ok(server.serve_with_incoming(incoming).await?)
}

fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}
