//! The metrics of a running engine, served to whoever scrapes them.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use mamparo::policy::Policies;
use mamparo_core::http::Http;
use mamparo_core::{CallContext, Dependency, Event, Observer, What};
use mamparo_durable::engine::Engine;
use mamparo_telemetry::durable::EngineWatch;
use mamparo_telemetry::{AttemptLayer, Metrics, OperationLayer};

use super::trouble::Trouble;
use crate::page::Page;
use crate::telemetry::Stream;

/// How often the store is looked at for them.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// What counts, and the page that it is read from. Nothing is counted where it is not served.
#[derive(Debug)]
pub(super) struct Served {
    pub(super) address: SocketAddr,
    page: Page,
    metrics: Metrics,
}

impl Served {
    /// Listens, and answers for as long as the process lives.
    pub(super) async fn at(address: SocketAddr, files: &Policies) -> Result<Self, Trouble> {
        let page = Page::at(address).await.map_err(|error| {
            Trouble::away(format!("metrics can't be served at {address}: {error}"))
        })?;
        Ok(Self {
            address: page.address,
            metrics: page.metrics().watch(files.clone()),
            page,
        })
    }

    /// Who hears the engine, and what its stacks do.
    pub(super) fn metrics(&self) -> Metrics {
        self.metrics.clone()
    }

    /// Looks at the engine's store until what is returned is dropped.
    pub(super) fn watch(&self, engine: &Engine) -> Result<EngineWatch, Trouble> {
        let watch = self.metrics.watch_engine(engine.clone(), LOOK_EVERY);
        watch.map_err(|error| Trouble::usage(error.to_string()))
    }

    /// Counts a reload, which was refused for this reason if there is one.
    pub(super) fn reloaded(&self, refused: Option<&str>) {
        let metrics: Arc<dyn Observer> = Arc::new(self.metrics());
        let why = refused.map(|line| io::Error::other(line.to_owned()));
        let refused = why.as_ref().map(|it| it as _);
        let what = What::PoliciesReloaded { refused };
        Event::report(Some(&metrics), &CallContext::EMPTY, what);
    }
}

/// Where what happens is told, if anywhere.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub(super) served: Option<Served>,
    pub(super) spans: Option<Stream>,
}

impl Told {
    /// The layers that record the operations and attempts of a dependency; they do nothing where nothing is told.
    pub(super) fn layers(&self, dependency: &str) -> (OperationLayer<Http>, AttemptLayer<Http>) {
        let dependency = Dependency::named(dependency);
        let (operation, attempt) = match &self.served {
            Some(Served { page, .. }) => page.layers(dependency),
            None => (
                OperationLayer::http(dependency),
                AttemptLayer::http(dependency),
            ),
        };
        match &self.spans {
            Some(spans) => (
                operation.tracer_provider(spans.provider()),
                attempt.tracer_provider(spans.provider()),
            ),
            None => (operation, attempt),
        }
    }
}
