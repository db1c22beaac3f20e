//! What is ours in these tests: tonic's clients and servers with the layers around them.

use std::net::SocketAddr;
use std::time::Duration;

use mamparo::client::{TonicClient, tonic};
use mamparo::deadline::DeadlinePolicy;
use mamparo::serve::{self, ServerLayers};
use mamparo::server_deadline::ServerDeadlinePolicy;
use mamparo::stack::Stack;
use mamparo_core::grpc::Grpc;
use mamparo_testkit::grpc::{Echo, EchoClient, EchoServer, connect};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tonic::service::Routes;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Server};
use tower::layer::util::Identity;

/// Settings of a client of gRPC, without telemetry.
pub(super) type GrpcStack = Stack<Identity, Identity, Identity, Grpc>;

/// The recommended stack around a channel, and a generated client on it.
pub(super) type Client = EchoClient<TonicClient<Channel>>;

/// A client with a stack.
pub(super) fn client(address: SocketAddr, stack: &GrpcStack) -> Client {
    EchoClient::new(tonic(connect(address), stack))
}

/// A client whose calls end within a limit.
pub(super) fn client_within(address: SocketAddr, limit: Duration) -> Client {
    let deadline = DeadlinePolicy::within(limit).unwrap();
    client(address, &Stack::grpc("peer").deadline(deadline))
}

/// A server of tonic's with the layers that bound its handlers; it stops when it is dropped.
#[derive(Debug)]
pub(crate) struct Ours {
    pub(crate) address: SocketAddr,
    task: JoinHandle<()>,
}

impl Ours {
    /// Serves with a limit for callers that bring none, or a longer one.
    pub(super) async fn serve(service: impl Echo, limit: Duration) -> Self {
        let policy = ServerDeadlinePolicy::builder().maximum(limit).build();
        let layers = serve::grpc().deadline(policy.unwrap());
        Self::serve_with(Routes::new(EchoServer::new(service)), layers).await
    }

    /// Serves with these layers.
    pub(crate) async fn serve_with(routes: Routes, layers: ServerLayers<Grpc>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = Server::builder().layer(layers).add_routes(routes);
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
