//! A page of metrics, for Prometheus to scrape.

use std::io;
use std::net::SocketAddr;

use axum::Router;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use mamparo_core::Dependency;
use mamparo_core::http::Http;
use mamparo_telemetry::prometheus::{self, Exposition};
use mamparo_telemetry::{AttemptLayer, Metrics, OperationLayer};
use tokio::net::TcpListener;

/// What counts, and where it is read.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) address: SocketAddr,
    exposition: Exposition,
}

impl Page {
    /// Listens, and answers for as long as the process lives.
    pub(crate) async fn at(address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let exposition = Exposition::new();
        let served = exposition.clone();
        let routes = Router::new().route("/metrics", get(move || page(served.clone())));
        tokio::spawn(axum::serve(listener, routes).into_future());
        Ok(Self {
            address,
            exposition,
        })
    }

    /// Metrics that are read there.
    pub(crate) fn metrics(&self) -> Metrics {
        Metrics::of(self.exposition.provider())
    }

    /// The layers that record a dependency's operations and attempts there.
    pub(crate) fn layers(
        &self,
        dependency: Dependency,
    ) -> (OperationLayer<Http>, AttemptLayer<Http>) {
        let meters = self.exposition.provider();
        (
            OperationLayer::http(dependency).meter_provider(meters),
            AttemptLayer::http(dependency).meter_provider(meters),
        )
    }
}

/// Collecting blocks, so it has a thread for that.
async fn page(exposition: Exposition) -> Response {
    match tokio::task::spawn_blocking(move || exposition.page()).await {
        Ok(Ok(page)) => ([(CONTENT_TYPE, prometheus::CONTENT_TYPE)], page).into_response(),
        _ => StatusCode::SERVICE_UNAVAILABLE.into_response(),
    }
}
