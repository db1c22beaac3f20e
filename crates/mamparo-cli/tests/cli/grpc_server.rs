//! A server of tonic's with reflection, that fails its first calls of `Say` by script.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mamparo_testkit::grpc::{
    Echo, EchoReply, EchoRequest, EchoServer, Echoing, FILE_DESCRIPTOR_SET,
};
use tokio::task::JoinHandle;
use tonic::metadata::MetadataMap;
use tonic::service::Routes;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Code, Request, Response, Status, Streaming};
use tonic_reflection::server::Builder;

/// Which reflection there is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reflection {
    None,
    V1,
    V1alpha,
}

/// A running server; it stops when it is dropped.
#[derive(Debug)]
pub(crate) struct GrpcServer {
    address: SocketAddr,
    scripted: Scripted,
    serving: JoinHandle<Result<(), tonic::transport::Error>>,
}

/// `Echoing`, with failures before it.
#[derive(Clone, Debug, Default)]
struct Scripted {
    failures: Arc<Mutex<VecDeque<Status>>>,
    seen: Arc<Mutex<Vec<MetadataMap>>>,
}

impl GrpcServer {
    /// Starts one that answers by these statuses first.
    pub(crate) async fn start(
        reflection: Reflection,
        failures: impl IntoIterator<Item = Status>,
    ) -> Self {
        let scripted = Scripted::default();
        scripted.failures.lock().unwrap().extend(failures);
        let mut routes = Routes::new(EchoServer::new(scripted.clone())).prepare();
        let reflected = || {
            Builder::configure()
                .register_encoded_file_descriptor_set(FILE_DESCRIPTOR_SET)
                .include_reflection_service(false)
        };
        match reflection {
            Reflection::None => {}
            Reflection::V1 => routes = routes.add_service(reflected().build_v1().unwrap()),
            Reflection::V1alpha => {
                routes = routes.add_service(reflected().build_v1alpha().unwrap());
            }
        }
        let incoming = TcpIncoming::bind(([127, 0, 0, 1], 0).into()).unwrap();
        let address = incoming.local_addr().unwrap();
        let server = Server::builder().add_routes(routes);
        Self {
            address,
            scripted,
            serving: tokio::spawn(server.serve_with_incoming(incoming)),
        }
    }

    /// One with reflection that fails nothing.
    pub(crate) async fn reflected() -> Self {
        Self::start(Reflection::V1, []).await
    }

    pub(crate) fn url(&self, method: &str) -> String {
        format!("http://{}/{method}", self.address)
    }

    /// The metadata of each call of `Say`.
    pub(crate) fn seen(&self) -> Vec<MetadataMap> {
        self.scripted.seen.lock().unwrap().clone()
    }
}

impl Drop for GrpcServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// A status that asks for a wait before the next attempt; below zero, for none.
pub(crate) fn pushed_back(millis: i32) -> Status {
    let mut metadata = MetadataMap::new();
    metadata.insert("grpc-retry-pushback-ms", millis.into());
    Status::with_metadata(Code::Unavailable, "no shards", metadata)
}

#[tonic::async_trait]
impl Echo for Scripted {
    type CountStream = <Echoing as Echo>::CountStream;
    type ChatStream = <Echoing as Echo>::ChatStream;

    async fn say(&self, request: Request<EchoRequest>) -> Result<Response<EchoReply>, Status> {
        self.seen.lock().unwrap().push(request.metadata().clone());
        let failure = self.failures.lock().unwrap().pop_front();
        match failure {
            Some(failure) => Err(failure),
            None => Echoing.say(request).await,
        }
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

/// Waits that a test can tell from none.
pub(crate) const MS: Duration = Duration::from_millis(1);
