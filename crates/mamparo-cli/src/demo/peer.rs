//! A plain HTTP server on a free port of loopback, that does by script what real ones do on bad days.

use std::fmt::{self, Display};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use mamparo_core::BoxError;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tower::Service;

/// What a peer does with a request.
#[derive(Debug)]
pub(super) enum Reply {
    Answer(Response<Full<Bytes>>),
    Late(Duration, Response<Full<Bytes>>),
    /// Closes the connection instead.
    Lost,
}

/// A running server; it stops when it is dropped.
#[derive(Debug)]
pub(super) struct Peer {
    address: SocketAddr,
    accepting: JoinHandle<()>,
}

/// Why a connection ends without an answer.
#[derive(Debug)]
pub(super) struct Lost;

type Script = dyn Fn(&Parts) -> Reply + Send + Sync;

impl Peer {
    pub(super) async fn start(
        script: impl Fn(&Parts) -> Reply + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let script: Arc<Script> = Arc::new(script);
        Self::accepting(move |stream| serve(stream, Arc::clone(&script))).await
    }

    /// Starts one that is a service of its own; where that fails, the connection is closed.
    pub(super) async fn serving<S, B>(service: S) -> io::Result<Self>
    where
        S: Service<Request<Incoming>, Response = Response<B>, Error = BoxError, Future: Send>,
        S: Clone + Send + 'static,
        B: Body<Data: Send, Error: Into<BoxError>> + Send + 'static,
    {
        Self::accepting(move |stream| {
            let service = TowerToHyperService::new(service.clone());
            let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            async move { drop(connection.await) }
        })
        .await
    }

    /// Gives each connection to `serve`.
    async fn accepting<F>(serve: impl Fn(TcpStream) -> F + Send + 'static) -> io::Result<Self>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let accepting = tokio::spawn(async move {
            // They end with this task.
            let mut open = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                while open.try_join_next().is_some() {}
                open.spawn(serve(stream));
            }
        });
        Ok(Self { address, accepting })
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn serve(stream: TcpStream, script: Arc<Script>) {
    let answer = |request: Request<Incoming>| {
        let script = Arc::clone(&script);
        async move {
            let (head, body) = request.into_parts();
            body.collect().await.map_err(|_| Lost)?;
            match script(&head) {
                Reply::Answer(response) => Ok(response),
                Reply::Late(by, response) => {
                    tokio::time::sleep(by).await;
                    Ok(response)
                }
                Reply::Lost => Err(Lost),
            }
        }
    };
    let connection =
        http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(answer));
    // It ends as the script or its client will have it.
    drop(connection.await);
}

impl Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the answer is lost")
    }
}

impl std::error::Error for Lost {}
