//! A server in a process of its own: this test binary once more, which runs [`the_server_itself`] alone.

use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use mamparo::serve::{self, Graceful, Readiness, StopPolicy, Stopped};
use mamparo_testkit::grpc::{Echo, EchoReply, EchoRequest, EchoServer, Echoing};
use tokio::net::TcpListener;
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status, Streaming};

use crate::own_process::{self, Said};

/// How long it serves on after it has said that it is not ready.
pub(super) const DELAY: Duration = Duration::from_millis(500);

/// How long it lets requests finish after that.
pub(super) const GRACE: Duration = Duration::from_millis(1_500);

const SAYS: &str = "MAMPARO_SERVES ";

/// The process.
pub(super) struct Server {
    child: Child,
    said: Said,
    pub(super) address: SocketAddr,
}

impl Server {
    /// Starts one of axum's, and waits until it listens.
    pub(super) async fn start() -> Self {
        Self::of("axum").await
    }

    /// Starts one of tonic's.
    pub(super) async fn start_tonic() -> Self {
        Self::of("tonic").await
    }

    async fn of(kind: &str) -> Self {
        let mut child = own_process::command("serving::process::the_server_itself")
            .env("MAMPARO_SERVES", kind)
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut said = Said::by(&mut child);
        let address = said.after(SAYS).await.parse().unwrap();
        Self {
            child,
            said,
            address,
        }
    }

    pub(super) async fn terminate(&self) {
        let pid = self.child.id().expect("it runs").to_string();
        let sent = Command::new("kill").args(["-TERM", &pid]).status().await;
        assert!(sent.unwrap().success());
    }

    /// Waits for its end; returns how many requests it began, how many it answered, and how it stopped.
    pub(super) async fn end(mut self) -> (usize, usize, String) {
        let said = self.said.after(SAYS).await;
        let words: Vec<_> = said.split(' ').collect();
        let ended = timeout(Duration::from_secs(20), self.child.wait()).await;
        assert!(ended.expect("it ends").unwrap().success());
        (
            words[0].parse().unwrap(),
            words[1].parse().unwrap(),
            words[2].to_owned(),
        )
    }
}

#[derive(Default)]
struct Counts {
    begun: AtomicUsize,
    answered: AtomicUsize,
}

/// Answers after a while: the path says after how many milliseconds.
fn routes(counts: &Arc<Counts>, readiness: &Readiness) -> Router {
    let counts = Arc::clone(counts);
    let handler = async move |axum::extract::Path(millis): axum::extract::Path<u64>| {
        counts.begun.fetch_add(1, Relaxed);
        sleep(Duration::from_millis(millis)).await;
        counts.answered.fetch_add(1, Relaxed);
        "done\n"
    };
    Router::new()
        .route("/after/{millis}", get(handler))
        .layer(serve::http().readiness(readiness.clone()))
        .route_service("/health/ready", readiness.clone())
}

/// No test: what [`Server::start`] starts.
#[test]
#[ignore = "the server of other tests, in a process of its own"]
fn the_server_itself() {
    let Some(kind) = std::env::var_os("MAMPARO_SERVES") else {
        return;
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let counts = Arc::new(Counts::default());
    let stopped = runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let serving = Serving {
            listener,
            counts: Arc::clone(&counts),
            readiness: Readiness::default(),
        };
        let termination = serve::termination().unwrap();
        println!("\n{SAYS}{address}");
        match kind == "tonic" {
            true => serving.tonic(termination).await,
            false => serving.axum(termination).await,
        }
    });
    // What was cut is dropped with the runtime.
    runtime.shutdown_background();
    let (begun, answered) = (counts.begun.load(Relaxed), counts.answered.load(Relaxed));
    println!("\n{SAYS}{begun} {answered} {stopped:?}");
}

struct Serving {
    listener: TcpListener,
    counts: Arc<Counts>,
    readiness: Readiness,
}

impl Serving {
    fn graceful(&self) -> Graceful {
        let policy = StopPolicy::builder().delay(DELAY).grace(GRACE);
        Graceful::new(self.readiness.clone(), policy.build().unwrap())
    }

    async fn axum(self, termination: impl Future<Output = ()>) -> Stopped {
        let graceful = self.graceful();
        let serving = axum::serve(self.listener, routes(&self.counts, &self.readiness));
        let stopped = graceful.run(termination, |stop| serving.with_graceful_shutdown(stop));
        stopped.await.unwrap()
    }

    async fn tonic(self, termination: impl Future<Output = ()>) -> Stopped {
        let graceful = self.graceful();
        let counting = Counting(self.counts);
        let server = tonic::transport::Server::builder()
            .layer(serve::grpc().readiness(self.readiness))
            .add_service(EchoServer::new(counting));
        let incoming = TcpIncoming::from(self.listener);
        let stopped = graceful.run(termination, |stop| {
            server.serve_with_incoming_shutdown(incoming, stop)
        });
        stopped.await.unwrap()
    }
}

/// Answers when the request says, and counts.
struct Counting(Arc<Counts>);

#[tonic::async_trait]
impl Echo for Counting {
    type CountStream = <Echoing as Echo>::CountStream;
    type ChatStream = <Echoing as Echo>::ChatStream;

    async fn say(&self, request: Request<EchoRequest>) -> Result<Response<EchoReply>, Status> {
        self.0.begun.fetch_add(1, Relaxed);
        let reply = Echoing.say(request).await;
        self.0.answered.fetch_add(1, Relaxed);
        reply
    }

    async fn count(
        &self,
        request: Request<EchoRequest>,
    ) -> Result<Response<Self::CountStream>, Status> {
        Echoing.count(request).await
    }

    async fn collect(
        &self,
        request: Request<Streaming<EchoRequest>>,
    ) -> Result<Response<EchoReply>, Status> {
        Echoing.collect(request).await
    }

    async fn chat(
        &self,
        request: Request<Streaming<EchoRequest>>,
    ) -> Result<Response<Self::ChatStream>, Status> {
        Echoing.chat(request).await
    }
}
