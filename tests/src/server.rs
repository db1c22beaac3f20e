//! A server's layers on axum, over real sockets: who stops when, and what the client gets.

use std::future::pending;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response, StatusCode};
use axum::routing::{MethodRouter, get};
use hyper_util::client::legacy::connect::HttpConnector;
use mamparo::client::HyperClient;
use mamparo::rejection::{RejectionLayer, RejectionPolicy};
use mamparo::retry::RetryPolicy;
use mamparo::server_deadline::{ServerDeadlineLayer, ServerDeadlinePolicy};
use mamparo::stack::Stack;
use mamparo::wire::HttpWire;
use mamparo::wire::codec::{DeadlineHeader, Skew};
use mamparo_core::{Backoff, CallContext, carry, clock, detach};
use mamparo_testkit::service::{Tracked, Watch};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{sleep, timeout};
use tower::{ServiceBuilder, ServiceExt};

use crate::served::{exchange, serve};

/// How long after its time is up a handler may still be there.
const GRACE: Duration = Duration::from_millis(50);

/// How often a measurement is made, on a machine that does something else besides: the best one counts.
const TRIES: usize = 5;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// The layers that stand around a whole server.
fn bounded(routes: Router) -> Router {
    let layers = ServiceBuilder::new()
        .layer(RejectionLayer::default())
        .layer(ServerDeadlineLayer::http(ServerDeadlinePolicy::default()));
    routes.layer(layers)
}

/// One handler that began: what remained then, and how it is seen to be dropped.
type Run = (Option<Duration>, Watch);

/// Hears of handlers.
#[derive(Clone)]
struct Runs(UnboundedSender<Run>);

impl Runs {
    fn new() -> (Self, UnboundedReceiver<Run>) {
        let (sender, receiver) = unbounded_channel();
        (Self(sender), receiver)
    }

    /// Notes a handler that begins; it lives as long as what is returned.
    fn begin(&self) -> Tracked<()> {
        let (run, watch) = Tracked::new(());
        let deadline = CallContext::current().deadline();
        let remaining = deadline.map(|deadline| deadline.remaining(clock::now()));
        self.0.send((remaining, watch)).unwrap();
        run
    }

    /// A handler that works until it is dropped.
    fn endless(self) -> MethodRouter {
        get(move || async move {
            let _run = self.begin();
            pending::<StatusCode>().await
        })
    }

    /// A handler that works for a while, then asks the next server.
    fn asking(self, next: SocketAddr, work: Duration) -> MethodRouter {
        let client = client();
        get(move || async move {
            let _run = self.begin();
            sleep(work).await;
            ask(client, next).await
        })
    }
}

/// A client with the recommended stack, that sends at most thrice.
fn client() -> HyperClient<HttpConnector, String> {
    let backoff = Backoff::builder().base(ms(1)).build().unwrap();
    let retry = RetryPolicy::builder().backoff(backoff).build().unwrap();
    mamparo::client::hyper(HttpConnector::new(), &Stack::http("next").retry(retry))
}

async fn ask(client: HyperClient<HttpConnector, String>, next: SocketAddr) -> Response<Body> {
    let request = Request::get(format!("http://{next}/")).body(String::new());
    match client.oneshot(request.unwrap()).await {
        Ok(answer) => answer.map(Body::new),
        Err(error) => RejectionPolicy::default().answer(&*error).map(Body::new),
    }
}

/// Two servers of which the first asks the second, and the runs of both.
struct Chain {
    address: SocketAddr,
    near: UnboundedReceiver<Run>,
    far: UnboundedReceiver<Run>,
}

impl Chain {
    async fn new(work: Duration) -> Self {
        let ((near, near_runs), (far, far_runs)) = (Runs::new(), Runs::new());
        let next = serve(bounded(Router::new().route("/", far.endless()))).await;
        let first = Router::new().route("/", near.asking(next, work));
        Self {
            address: serve(bounded(first)).await,
            near: near_runs,
            far: far_runs,
        }
    }

    /// Sends a request to the first server, and waits until both handle it.
    async fn begin(&mut self, timeout_ms: u64) -> (TcpStream, Run, Run) {
        let mut socket = TcpStream::connect(self.address).await.unwrap();
        let head = format!("GET / HTTP/1.1\r\nhost: a\r\nx-request-timeout-ms: {timeout_ms}");
        let request = format!("{head}\r\n\r\n");
        socket.write_all(request.as_bytes()).await.unwrap();
        let near = self.near.recv().await.unwrap();
        (socket, near, self.far.recv().await.unwrap())
    }
}

/// Waits until both handlers are gone, and says when the later one went.
async fn gone(near: &Watch, far: &Watch) -> clock::Instant {
    let both = async {
        loop {
            match (near.dropped_at(), far.dropped_at()) {
                (Some(near), Some(far)) => break near.max(far),
                _ => sleep(ms(1)).await,
            }
        }
    };
    let end = timeout(Duration::from_secs(10), both).await;
    end.expect("the handlers stop")
}

/// Row P-A6.
#[tokio::test]
async fn a_handler_stops_within_50_ms_of_its_deadline() {
    let (runs, mut heard) = Runs::new();
    let address = serve(bounded(Router::new().route("/", runs.endless()))).await;
    let mut best = Duration::MAX;
    for _ in 0..TRIES {
        let start = clock::now();
        let answer = exchange(address, "GET / HTTP/1.1\r\nx-request-timeout-ms: 100").await;
        assert!(answer.starts_with("HTTP/1.1 504"));
        let (_, run) = heard.recv().await.unwrap();
        let lived = run.dropped_at().unwrap().duration_since(start);
        assert!(lived >= ms(100), "stopped after {lived:?}, too early");
        best = best.min(lived);
    }
    assert!(best < ms(100) + GRACE, "stopped after {best:?}");
}

/// Row P-A1: the second knows what the first has spent, and neither outlasts the deadline.
#[tokio::test]
async fn the_handlers_of_a_chain_stop_within_50_ms_of_the_deadline() {
    let mut chain = Chain::new(ms(150)).await;
    let mut best = Duration::MAX;
    for _ in 0..TRIES {
        let start = clock::now();
        let (_socket, (_, near), (remaining, far)) = chain.begin(400).await;
        let remaining = remaining.unwrap();
        assert!(
            remaining <= ms(250),
            "{remaining:?} of 400 ms, 150 ms later"
        );
        let lived = gone(&near, &far).await.duration_since(start);
        // The first gives up a little earlier, so as to answer in time.
        assert!(lived >= ms(350), "stopped after {lived:?}, too early");
        best = best.min(lived);
    }
    assert!(best < ms(400) + GRACE, "stopped after {best:?}");
}

#[tokio::test]
async fn the_handlers_of_a_chain_stop_within_50_ms_of_their_caller_giving_up() {
    let mut chain = Chain::new(Duration::ZERO).await;
    let mut best = Duration::MAX;
    for _ in 0..TRIES {
        let (socket, (_, near), (_, far)) = chain.begin(30_000).await;
        sleep(ms(20)).await;
        assert!(!near.is_dropped() && !far.is_dropped());
        let gave_up = clock::now();
        drop(socket);
        best = best.min(gone(&near, &far).await.duration_since(gave_up));
    }
    assert!(best < GRACE, "stopped {best:?} after");
}

/// Law 1: the count of disbelieved deadlines is the layer's, on all routes, however they are called.
#[tokio::test]
async fn one_server_deadline_on_several_routes_has_one_count() {
    let header = DeadlineHeader::epoch_millis("x-request-deadline").unwrap();
    let wire = HttpWire::default().accepts(header);
    let deadline = ServerDeadlineLayer::with_wire(ServerDeadlinePolicy::default(), wire);
    // Every second request that comes too late is believed to.
    let layer = ServiceBuilder::new()
        .layer(RejectionLayer::default())
        .layer(deadline.skew(Skew::new(ms(500), 50).unwrap()));
    let fine = || get(async || "fine");
    let routes = Router::new()
        .route("/a", fine().layer(layer.clone()))
        .route("/b", fine().layer(layer));
    let address = serve(routes.clone()).await;
    let in_memory = async |path: &str| {
        let request = Request::get(path).header("x-request-deadline", "1000");
        let request = request.body(Body::empty()).unwrap();
        routes.clone().oneshot(request).await.unwrap().status()
    };
    let over_socket = async |path: &str| {
        let head = format!("GET {path} HTTP/1.1\r\nx-request-deadline: 1000");
        let answer = exchange(address, &head).await;
        StatusCode::from_bytes(&answer.as_bytes()[9..12]).unwrap()
    };
    for _ in 0..2 {
        assert_eq!(in_memory("/a").await, 200);
        assert_eq!(over_socket("/b").await, 504);
        assert_eq!(in_memory("/b").await, 200);
        assert_eq!(over_socket("/a").await, 504);
    }
}

/// `PD-V5`, `PD-V7`.
#[tokio::test]
async fn a_late_request_gets_a_problem_and_head_its_headers() {
    let (runs, _heard) = Runs::new();
    let address = serve(bounded(Router::new().route("/", runs.endless()))).await;
    let ask = async |method: &str| {
        let head = format!("{method} / HTTP/1.1\r\nx-request-timeout-ms: 20");
        let answer = exchange(address, &head).await;
        assert!(answer.starts_with("HTTP/1.1 504 Gateway Timeout\r\n"));
        assert!(answer.contains("content-type: application/problem+json\r\n"));
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        body.to_owned()
    };
    let problem: serde_json::Value = serde_json::from_str(&ask("GET").await).unwrap();
    assert_eq!(problem["status"], 504);
    assert_eq!(problem["title"], "Gateway Timeout");
    assert_eq!(ask("HEAD").await, "");
}

#[tokio::test]
async fn a_handler_that_answers_its_clients_error_marks_spent_attempts() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let nobody = listener.local_addr().unwrap();
    drop(listener);
    let (runs, _heard) = Runs::new();
    let first = Router::new().route("/", runs.asking(nobody, Duration::ZERO));
    let address = serve(bounded(first)).await;
    let answer = exchange(address, "GET / HTTP/1.1").await;
    assert!(
        answer.starts_with("HTTP/1.1 503 Service Unavailable\r\n"),
        "{answer}"
    );
    assert!(
        answer.contains("x-mamparo-retry: exhausted\r\n"),
        "{answer}"
    );
    assert!(answer.contains(r#""dependency":"next""#), "{answer}");
    assert!(!answer.contains(&nobody.to_string()), "{answer}");
}

/// `DH-10`.
#[tokio::test]
async fn detached_work_outlives_the_request_and_carried_work_keeps_its_deadline() {
    let (runs, mut heard) = Runs::new();
    let handler = get(move || async move {
        let (carried, detached) = (runs.clone(), runs.clone());
        tokio::spawn(carry(async move { drop(carried.begin()) }));
        tokio::spawn(detach(async move {
            sleep(ms(100)).await;
            drop(detached.begin());
        }));
        let _run = runs.begin();
        pending::<StatusCode>().await
    });
    let address = serve(bounded(Router::new().route("/", handler))).await;
    let answer = exchange(address, "GET / HTTP/1.1\r\nx-request-timeout-ms: 50").await;
    assert!(answer.starts_with("HTTP/1.1 504"));
    for bounded in [true, true, false] {
        let (remaining, _) = heard.recv().await.unwrap();
        assert_eq!(remaining.is_some(), bounded);
        assert!(remaining.is_none_or(|remaining| remaining <= ms(50)));
    }
}
