//! A gateway with few workers, in front of a slow dependency and a healthy one.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::{Method, StatusCode};
use mamparo::rejection::RejectionPolicy;
use mamparo_core::BoxError;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use crate::demo::client::{Hyper, request, send};

/// As many requests are worked on at once.
const WORKERS: usize = 12;

/// The running gateway; it stops when it is dropped.
#[derive(Debug)]
pub(super) struct Gateway {
    address: SocketAddr,
    serving: JoinHandle<std::io::Result<()>>,
}

/// What answers a route: a client of a dependency, the address there, and the workers of all.
#[derive(Clone)]
struct Route {
    client: Hyper,
    url: String,
    workers: Arc<Semaphore>,
}

impl Gateway {
    /// Opens it with a client, and an address, for `/slow` and for `/healthy`.
    pub(super) async fn open(
        slow: (Hyper, String),
        healthy: (Hyper, String),
    ) -> Result<Self, BoxError> {
        let workers = Arc::new(Semaphore::new(WORKERS));
        let route = |(client, url): (Hyper, String)| {
            let workers = Arc::clone(&workers);
            get(ask).with_state(Route {
                client,
                url,
                workers,
            })
        };
        let routes = Router::new()
            .route("/slow", route(slow))
            .route("/healthy", route(healthy));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let serving = tokio::spawn(axum::serve(listener, routes).into_future());
        Ok(Self { address, serving })
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Takes a worker, and asks the dependency.
async fn ask(State(route): State<Route>) -> Response {
    let Ok(_worker) = route.workers.acquire().await else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    let asked = async {
        let request = request(Method::GET, &route.url, None)?;
        send(route.client, request).await
    };
    match asked.await {
        Ok(answer) => answer.map(Body::from).into_response(),
        Err(error) => {
            let answer = RejectionPolicy::default().answer(&*error);
            answer.map(Body::from).into_response()
        }
    }
}
