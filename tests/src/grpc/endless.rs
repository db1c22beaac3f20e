//! A service whose every answer takes for ever, and whoever hears of it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::stream::{self, BoxStream, StreamExt};
use mamparo::serve::{ServerLayers, grpc as layers};
use mamparo::server_deadline::ServerDeadlinePolicy;
use mamparo_core::grpc::Grpc;
use mamparo_core::{CallContext, clock};
use mamparo_testkit::grpc::{Echo, EchoReply, EchoRequest, EchoServer};
use mamparo_testkit::server;
use mamparo_testkit::service::{Tracked, Watch};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{sleep, timeout};
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status, Streaming};
use tower::Service;

/// How far apart an endless stream's frames are.
pub(super) const EVERY: Duration = Duration::from_millis(100);

/// One handler that began: what remained then, and how it is seen to be dropped, its answer's stream included.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) remaining: Option<Duration>,
    watch: Watch,
    produced: Arc<AtomicUsize>,
}

impl Run {
    /// Returns how many frames were made.
    pub(super) fn produced(&self) -> usize {
        self.produced.load(Ordering::Relaxed)
    }

    /// Waits until the handler is gone, and says when it went.
    pub(super) async fn gone(&self) -> clock::Instant {
        let gone = async {
            loop {
                match self.watch.dropped_at() {
                    Some(at) => break at,
                    None => sleep(Duration::from_millis(1)).await,
                }
            }
        };
        let end = timeout(Duration::from_secs(5), gone).await;
        end.expect("the handler stops")
    }
}

/// Returns what remains of the current deadline.
pub(super) fn remaining() -> Option<Duration> {
    let deadline = CallContext::current().deadline();
    deadline.map(|deadline| deadline.remaining(clock::now()))
}

/// Hears of handlers.
#[derive(Clone, Debug)]
pub(super) struct Runs(UnboundedSender<Run>);

impl Runs {
    pub(super) fn new() -> (Self, UnboundedReceiver<Run>) {
        let (sender, receiver) = unbounded_channel();
        (Self(sender), receiver)
    }

    /// Notes a handler that begins; it lives as long as what is returned.
    pub(super) fn begin(&self) -> Tracked<Arc<AtomicUsize>> {
        let (run, watch) = Tracked::new(Arc::default());
        let produced = Arc::clone(&run.value);
        let remaining = remaining();
        let run_began = Run {
            remaining,
            watch,
            produced,
        };
        self.0.send(run_began).unwrap();
        run
    }
}

/// Answers nothing but frames, and reads as long as there is something to read.
#[derive(Clone, Debug)]
pub(super) struct Endless(pub(super) Runs);

type Frames = BoxStream<'static, Result<EchoReply, Status>>;

fn frames(run: Tracked<Arc<AtomicUsize>>) -> Frames {
    let next = |run: Tracked<Arc<AtomicUsize>>| async move {
        if run.value.fetch_add(1, Ordering::Relaxed) > 0 {
            sleep(EVERY).await;
        }
        Some((Ok(EchoReply::default()), run))
    };
    stream::unfold(run, next).boxed()
}

#[tonic::async_trait]
impl Echo for Endless {
    type CountStream = Frames;
    type ChatStream = Frames;

    async fn say(&self, _: Request<EchoRequest>) -> Result<Response<EchoReply>, Status> {
        let _run = self.0.begin();
        std::future::pending().await
    }

    async fn count(&self, _: Request<EchoRequest>) -> Result<Response<Frames>, Status> {
        Ok(Response::new(frames(self.0.begin())))
    }

    async fn collect(
        &self,
        requests: Request<Streaming<EchoRequest>>,
    ) -> Result<Response<EchoReply>, Status> {
        let _run = self.0.begin();
        let mut requests = requests.into_inner();
        while requests.message().await?.is_some() {}
        Err(Status::data_loss("the upload was whole"))
    }

    async fn chat(
        &self,
        requests: Request<Streaming<EchoRequest>>,
    ) -> Result<Response<Frames>, Status> {
        let requests = requests.into_inner();
        let replies = frames(self.0.begin());
        let open = stream::once(async move {
            drop(requests);
            Err(Status::data_loss("never reached"))
        });
        Ok(Response::new(replies.chain(open).boxed()))
    }
}

/// Serves with the layers of a server around it.
pub(super) async fn serve(service: impl Echo, layers: ServerLayers<Grpc>) -> SocketAddr {
    let incoming = TcpIncoming::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = incoming.local_addr().unwrap();
    let server = Server::builder().layer(layers);
    let server = { server }.add_service(EchoServer::new(service));
    tokio::spawn(server.serve_with_incoming(incoming));
    address
}

/// Serves with nothing around it that knows of deadlines, tonic's own timer included.
pub(super) async fn serve_bare(service: impl Echo) -> server::Server {
    let service = EchoServer::new(service);
    server::Server::with(move |request| {
        let mut service = service.clone();
        async move { service.call(request).await.unwrap() }
    })
    .await
}

/// A server's layers with a limit of their own.
pub(super) fn within(limit: Duration) -> ServerLayers<Grpc> {
    let policy = ServerDeadlinePolicy::builder().maximum(limit);
    layers().deadline(policy.build().unwrap())
}
