//! A server's life: it listens, is asked for its health and its metrics, and stops with whoever started it.

use std::io::Read as _;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{MatchedPath, Query, Request};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, put};
use mamparo::fault::{Fault, FaultLayer, FaultPlan, HttpAnswer};
use mamparo::serve::{self, Graceful, Readiness, ServerLayers, StopPolicy};
use mamparo_core::BoxError;
use mamparo_core::http::Http;
use mamparo_telemetry::prometheus::{CONTENT_TYPE, Exposition};
use mamparo_telemetry::server::HttpServed;
use mamparo_telemetry::{Metrics, ServerCallLayer};
use serde::Deserialize;
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};
use tower::ServiceBuilder;

use super::settings::Place;
use super::telemetry;

/// The layers of a server here, for what else is to be set.
pub(crate) type Layers = ServerLayers<Http, ServerCallLayer<Http, HttpServed>>;

/// One process's server.
pub(crate) struct Server {
    place: Place,
    exposition: Exposition,
    stop: watch::Sender<bool>,
}

/// Ends when the process is to stop.
#[derive(Clone)]
pub(crate) struct Stop(watch::Receiver<bool>);

impl Stop {
    pub(crate) async fn told(mut self) {
        // An error says that nobody is left to tell.
        let _gone = self.0.wait_for(|stop| *stop).await;
    }
}

impl Server {
    pub(crate) fn open(place: &Place) -> Result<Self, BoxError> {
        Ok(Self {
            place: place.clone(),
            exposition: telemetry::install(place)?,
            stop: watch::channel(false).0,
        })
    }

    pub(crate) fn stop(&self) -> Stop {
        Stop(self.stop.subscribe())
    }

    /// Serves these routes, which have their layers, and works beside it; what dies takes the process with it.
    pub(crate) async fn run(
        self,
        routes: Router,
        readiness: Readiness,
        work: impl Future<Output = Result<(), BoxError>>,
    ) -> Result<(), BoxError> {
        let exposition = self.exposition;
        let metrics = move || page(exposition.clone());
        let routes = routes
            .route("/metrics", get(metrics))
            .route_service("/health/ready", readiness.clone());
        let listener = TcpListener::bind(self.place.listen).await?;
        let (stop, orphaned) = (self.stop, orphaned());
        let termination = serve::termination()?;
        let told = async move {
            tokio::select! {
                () = termination => {}
                _ = orphaned => {}
            }
            stop.send_replace(true);
        };
        let graceful = Graceful::new(readiness, StopPolicy::default());
        let serving = graceful.run(told, |stop| {
            axum::serve(listener, routes).with_graceful_shutdown(stop)
        });
        tokio::try_join!(async { Ok(serving.await?) }, work)?;
        Ok(())
    }
}

/// Adds what all servers here have.
pub(crate) fn layers(layers: ServerLayers<Http>, readiness: &Readiness) -> Layers {
    let telemetry = ServerCallLayer::http()
        .route(|extensions| extensions.get::<MatchedPath>().map(MatchedPath::as_str));
    layers
        .readiness(readiness.clone())
        .observer(Arc::new(Metrics::new()))
        .telemetry(telemetry)
}

/// A server that plays somebody else's, and can be told by `PUT /fault?latency_ms=3000&status=503` to play it badly.
pub(crate) fn faulty(routes: Router, readiness: &Readiness) -> Result<Router, BoxError> {
    let faults = FaultLayer::http(FaultPlan::<Request, _>::new([])?);
    let handle = faults.handle();
    let set = move |Query(wanted): Query<Wanted>| async move {
        let plan = FaultPlan::new(wanted.faults());
        plan.map(|plan| handle.set(plan))
            .map_err(|error| (StatusCode::BAD_REQUEST, error.to_string()))
    };
    let around = ServiceBuilder::new()
        .layer(layers(serve::http(), readiness))
        .layer(faults);
    Ok(routes.layer(around).route("/fault", put(set)))
}

#[derive(Deserialize)]
struct Wanted {
    #[serde(default)]
    latency_ms: u64,
    status: Option<u16>,
}

impl Wanted {
    fn faults(&self) -> Vec<Fault<Request, HttpAnswer>> {
        let mut faults = vec![Fault::latency(Duration::from_millis(self.latency_ms))];
        if let Some(Ok(status)) = self.status.map(StatusCode::from_u16) {
            faults.push(Fault::response(move || {
                let mut answer = http::Response::default();
                *answer.status_mut() = status;
                answer
            }));
        }
        faults
    }
}

/// What Prometheus reads. Collecting may block.
async fn page(exposition: Exposition) -> Response<Body> {
    let page = tokio::task::spawn_blocking(move || exposition.page()).await;
    match page {
        Ok(Ok(page)) => ([("content-type", CONTENT_TYPE)], page).into_response(),
        _ => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// Ends when whoever started the process is gone: the input, which it held, is over.
fn orphaned() -> oneshot::Receiver<()> {
    let (gone, orphaned) = oneshot::channel();
    std::thread::spawn(move || {
        let _end = std::io::stdin().read_to_end(&mut Vec::new());
        drop(gone);
    });
    orphaned
}
