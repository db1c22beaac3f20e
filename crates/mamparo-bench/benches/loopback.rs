//! Real requests over real sockets: hyper's client to hyper's server, in one process, on two threads.

use std::cell::Cell;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::mpsc::{self, Sender};
use std::time::Duration;
use std::{io, thread};

use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body as HttpBody, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use mamparo::breaker::BreakerPolicy;
use mamparo::client::hyper;
use mamparo::fallback::{self, FallbackLayer, FallbackPolicy, Value};
use mamparo::idempotency_key::KeyPolicy;
use mamparo::load_shed::LoadShedPolicy;
use mamparo::rate_limit::RateLimitPolicy;
use mamparo::stack::Stack;
use mamparo_core::BoxError;
use mamparo_core::http::Http;
use mamparo_telemetry::{AttemptLayer, OperationLayer};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::task::LocalSet;
use tower::layer::util::Identity;
use tower::{Service, ServiceExt};

use crate::cases::{Case, Group, tower_own, tower_resilience};

const CONNECTIONS: u64 = 64;

/// More calls than there are connections.
const MOST: usize = 1_000;

const NAME: &str = "catalog";

type Body = Full<Bytes>;

/// The bare client, the same again (which shows the noise), and stacks around it.
pub(crate) fn group() -> Result<Group, BoxError> {
    let uri: Uri = format!("http://{}/items/1", serve()?).parse()?;
    let bare = |name| case(name, &uri, || Ok(client()));
    Ok(Group {
        name: "loopback",
        cases: vec![
            bare("hyper client"),
            bare("hyper client again"),
            case("tower's around it", &uri, || tower_own::whole(client())),
            case("tower-resilience's around it", &uri, || {
                tower_resilience::whole(client())
            }),
            case("our stack around it", &uri, || {
                Ok(hyper(connector(), &Stack::http(NAME)))
            }),
            case("every layer of ours around it", &uri, || {
                Ok(hyper(connector(), &every_layer()?))
            }),
            case("every layer, and telemetry", &uri, || {
                Ok(hyper(connector(), &with_telemetry()?))
            }),
        ],
    })
}

fn client<B>() -> Client<HttpConnector, B>
where
    B: HttpBody<Data: Send> + Send,
{
    Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .build(connector())
}

type EveryLayer<O = Identity, A = Identity> =
    Stack<O, A, FallbackLayer<Http, Value<Response<Body>>>>;

/// The stack with all that is off by default, but a hedge, which would take the retry's place.
fn every_layer() -> Result<EveryLayer, BoxError> {
    let shed = LoadShedPolicy::builder().max_in_flight(MOST);
    let breaker = BreakerPolicy::builder().failure_rate(0.5);
    let rate = RateLimitPolicy::per(Duration::from_secs(1), 1_000_000);
    let nothing = fallback::value(Response::new(Body::default()));
    Ok(Stack::http(NAME)
        .load_shed(shed.build()?)
        .idempotency_key(KeyPolicy::default())
        .operation_breaker(BreakerPolicy::default())
        .breaker(breaker.build()?)
        .rate_limit(rate.build()?)
        .fallback(FallbackPolicy::default(), nothing))
}

/// With telemetry, and nobody who wants it.
fn with_telemetry() -> Result<EveryLayer<OperationLayer<Http>, AttemptLayer<Http>>, BoxError> {
    let operation = OperationLayer::http(NAME);
    Ok(every_layer()?.telemetry(operation, AttemptLayer::http(NAME)))
}

fn connector() -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    connector
}

fn case<S, B>(name: &'static str, uri: &Uri, client: fn() -> Result<S, BoxError>) -> Case
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + 'static,
    S::Error: Into<BoxError>,
    B: HttpBody<Error: Into<BoxError>> + 'static,
{
    let uri = uri.clone();
    Case::new(name, size_of::<S::Future>(), move || {
        let runtime = runtime()?;
        let inside = runtime.enter();
        let (client, uri) = (client()?, uri.clone());
        drop(inside);
        let work = move |requests| {
            let left = Rc::new(Cell::new(requests));
            let connections = LocalSet::new();
            for _ in 0..CONNECTIONS {
                connections.spawn_local(keep_sending(
                    client.clone(),
                    uri.clone(),
                    Rc::clone(&left),
                ));
            }
            runtime.block_on(connections);
        };
        Ok(Box::new(work))
    })
}

#[expect(
    clippy::print_stderr,
    reason = "figures with failed requests in them mean nothing"
)]
/// Sends one request after the other and reads each answer to its end, as long as some are `left`.
async fn keep_sending<S, B>(mut client: S, uri: Uri, left: Rc<Cell<u64>>)
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Error: Into<BoxError>,
    B: HttpBody<Error: Into<BoxError>>,
{
    while let Some(rest) = left.get().checked_sub(1) {
        left.set(rest);
        let mut request = Request::new(Body::default());
        *request.uri_mut() = uri.clone();
        if let Err(error) = exchange(&mut client, request).await {
            eprintln!("a request over loopback failed: {error}");
        }
    }
}

async fn exchange<S, B>(client: &mut S, request: Request<Body>) -> Result<(), BoxError>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Error: Into<BoxError>,
    B: HttpBody<Error: Into<BoxError>>,
{
    let client = client.ready().await.map_err(Into::into)?;
    let answer = client.call(request).await.map_err(Into::into)?;
    answer.into_body().collect().await.map_err(Into::into)?;
    Ok(())
}

/// Starts a server on a thread of its own, which lives as long as the process.
fn serve() -> Result<SocketAddr, BoxError> {
    let (started, address) = mpsc::channel();
    thread::spawn(move || runtime()?.block_on(accept(&started)));
    Ok(address.recv()?)
}

async fn accept(started: &Sender<SocketAddr>) -> io::Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    if started.send(listener.local_addr()?).is_err() {
        return Ok(()); // nobody waits for it any more
    }
    loop {
        let (socket, _) = listener.accept().await?;
        socket.set_nodelay(true)?;
        let connection = http1::Builder::new().serve_connection(
            TokioIo::new(socket),
            service_fn(async |_: Request<Incoming>| {
                Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(b"ok"))))
            }),
        );
        tokio::spawn(connection);
    }
}

fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}
