//! The server that a test holds.

use super::connection::{Handler, accept};
use super::log::{Log, Seen};
use super::play::{self, box_body};
use super::replies::Replies;
use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use mamparo_core::clock::Instant;
use std::collections::BTreeMap;
use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// How long [`Server::until_idle`] waits before it gives the test up.
const IDLE_LIMIT: Duration = Duration::from_secs(10);

/// A scripted HTTP server on a free port of 127.0.0.1; it stops when it is dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    log: Arc<Log>,
    task: JoinHandle<()>,
}

impl Server {
    /// Starts a server that answers by script.
    ///
    /// # Panics
    ///
    /// Panics if no port of 127.0.0.1 can be opened.
    pub async fn start(replies: impl Into<Replies>) -> Self {
        let replies = Arc::new(replies.into());
        let handler: Handler = Arc::new(move |request, exchange| {
            let reply = replies.next(request.uri().path());
            Box::pin(play::play(reply, request, exchange))
        });
        Self::listen(handler).await
    }

    /// Starts a server that answers with what a closure returns; [`Seen`] then has no bodies.
    ///
    /// # Panics
    ///
    /// Panics if no port of 127.0.0.1 can be opened.
    pub async fn with<F, Fut, B>(handler: F) -> Self
    where
        F: Fn(Request<Incoming>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Response<B>> + Send + 'static,
        B: Body<Data = Bytes> + Send + 'static,
    {
        let handler: Handler = Arc::new(move |request, exchange| {
            let response = handler(request);
            Box::pin(async move { Ok(response.await.map(|body| box_body(body, exchange))) })
        });
        Self::listen(handler).await
    }

    async fn listen(handler: Handler) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .expect("a free port on 127.0.0.1");
        let address = listener.local_addr().expect("a bound socket's address");
        let log = Arc::new(Log::default());
        let task = tokio::spawn(accept(listener, Arc::clone(&log), handler));
        Self { address, log, task }
    }

    /// Returns the address that the server listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the URL of a path, which begins with `/`.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Returns every request whose head has arrived, in order.
    #[must_use]
    pub fn requests(&self) -> Vec<Seen> {
        self.log.read(|notes| notes.requests.clone())
    }

    /// Returns how many effects were committed, by key; those without a key are under `""`.
    #[must_use]
    pub fn effects(&self) -> BTreeMap<String, usize> {
        self.log.read(|notes| notes.effects.clone())
    }

    /// Returns how many connections were ever accepted.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.log.read(|notes| notes.connections)
    }

    /// Returns how many handlers run now: from the request's head until the response's body is over.
    #[must_use]
    pub fn running(&self) -> usize {
        self.log.read(|notes| notes.running())
    }

    /// Returns when the last handler stopped: it ended, or was dropped because its client went away.
    #[must_use]
    pub fn stopped_at(&self) -> Option<Instant> {
        self.log.read(|notes| notes.last_stop())
    }

    /// Waits until no handler runs.
    ///
    /// # Panics
    ///
    /// Panics if one still runs after ten seconds.
    pub async fn until_idle(&self) {
        let idle = async {
            while self.running() > 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let waited = tokio::time::timeout(IDLE_LIMIT, idle).await;
        assert!(waited.is_ok(), "a handler still runs after {IDLE_LIMIT:?}");
    }

    /// Stops the server: from the return on, connections to its port are refused.
    pub async fn stop(mut self) {
        self.task.abort();
        let stopped = (&mut self.task).await;
        debug_assert!(stopped.is_err(), "the accepting task ends only by abort");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}
