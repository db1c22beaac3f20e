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
use mamparo::attempt_timeout::{AttemptPolicy, AttemptTimeoutLayer};
use mamparo::breaker::{BreakerLayer, BreakerPolicy};
use mamparo::bulkhead::{BulkheadLayer, BulkheadPolicy};
use mamparo::client::{HyperClient, HyperTransport};
use mamparo::deadline::{DeadlineLayer, DeadlinePolicy};
use mamparo::fallback::{self, FallbackLayer, FallbackPolicy};
use mamparo::load_shed::{LoadShedLayer, LoadShedPolicy};
use mamparo::rate_limit::{RateLimitLayer, RateLimitPolicy};
use mamparo::retry::{RetryLayer, RetryPolicy};
use mamparo::stack::Stack;
use mamparo_core::BoxError;
use mamparo_telemetry::AttemptLayer;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::task::LocalSet;
use tower::{Service, ServiceBuilder, ServiceExt};

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
            case("our stack around it", &uri, || Ok(stack())),
            case("our every layer around it", &uri, every_layer),
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

fn stack() -> HyperClient<HttpConnector, Body> {
    mamparo::client::hyper(connector(), &Stack::http(NAME))
}

/// All that protects a client, in the order of docs/stack-order.md.
fn every_layer() -> Result<
    impl Service<Request<Body>, Response = Response<impl HttpBody<Error = BoxError>>, Error = BoxError>
    + Clone,
    BoxError,
> {
    let nothing = fallback::value(Response::new(Body::default()));
    let shed = LoadShedPolicy::builder().max_in_flight(MOST);
    let bulkhead = BulkheadPolicy::builder().limit(MOST);
    let breaker = BreakerPolicy::builder().failure_rate(0.5);
    let rate = RateLimitPolicy::per(Duration::from_secs(1), 1_000_000);
    let layers = ServiceBuilder::new()
        .layer(DeadlineLayer::http(DeadlinePolicy::default()).dependency(NAME))
        .layer(FallbackLayer::http(FallbackPolicy::default(), nothing).dependency(NAME))
        .layer(LoadShedLayer::http(shed.build()?).dependency(NAME))
        .layer(BulkheadLayer::http(bulkhead.build()?).dependency(NAME))
        .layer(RetryLayer::http(RetryPolicy::default()).dependency(NAME))
        .layer(BreakerLayer::http(breaker.build()?).dependency(NAME))
        .layer(RateLimitLayer::http(rate.build()?).dependency(NAME))
        .layer(AttemptTimeoutLayer::http(AttemptPolicy::default()).dependency(NAME))
        .layer(AttemptLayer::http(NAME));
    let transport = HyperTransport::new(client());
    Ok(layers.service(transport))
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
