//! What is ours in these tests: tonic's clients and servers with the layers around them.

use std::net::SocketAddr;
use std::time::Duration;

use http::Request;
use mamparo::attempt_timeout::{AttemptPolicy, AttemptTimeoutLayer};
use mamparo::deadline::{DeadlineLayer, DeadlinePolicy};
use mamparo::rejection::RejectionLayer;
use mamparo::server_deadline::{ServerDeadlineLayer, ServerDeadlinePolicy};
use mamparo::wire::HttpWire;
use mamparo_testkit::grpc::{Echo, EchoClient, EchoServer, connect};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tonic::Status;
use tonic::body::Body;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tower::ServiceBuilder;
use tower::util::BoxCloneSyncService;

/// A client's whole stack, whatever it is made of.
pub(super) type Stacked = BoxCloneSyncService<Request<Body>, http::Response<Body>, Status>;

/// A client whose calls end within a limit.
pub(super) fn client_within(address: SocketAddr, limit: Duration) -> EchoClient<Stacked> {
    let deadline = DeadlinePolicy::within(limit).unwrap();
    let stack = ServiceBuilder::new()
        .map_response(|response: http::Response<_>| response.map(Body::new))
        .map_err(Status::from_error)
        .layer(DeadlineLayer::with_wire(deadline, HttpWire::grpc()))
        .layer(AttemptTimeoutLayer::with_wire(
            AttemptPolicy::default(),
            HttpWire::grpc(),
        ))
        .service(connect(address));
    EchoClient::new(BoxCloneSyncService::new(stack))
}

/// A server of tonic's with the layers that bound its handlers; it stops when it is dropped.
#[derive(Debug)]
pub(super) struct Ours {
    pub(super) address: SocketAddr,
    task: JoinHandle<()>,
}

impl Ours {
    /// Serves with a limit for callers that bring none, or a longer one.
    pub(super) async fn serve(service: impl Echo, limit: Duration) -> Self {
        let policy = ServerDeadlinePolicy::builder()
            .maximum(limit)
            .default_limit(limit);
        let layers = ServiceBuilder::new()
            .layer(RejectionLayer::default())
            .layer(ServerDeadlineLayer::with_wire(
                policy.build().unwrap(),
                HttpWire::grpc(),
            ));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = Server::builder()
            .layer(layers)
            .add_service(EchoServer::new(service));
        let serving = server.serve_with_incoming(TcpIncoming::from(listener));
        let task = tokio::spawn(async { serving.await.unwrap() });
        Self { address, task }
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        self.task.abort();
    }
}
