//! The suite that every backend of events runs: a schema for each case.

use std::sync::Arc;

use mamparo_durable::conformance::events::EventBackend;

use super::support::Service;

async fn fresh() -> (Arc<dyn EventBackend>, ()) {
    (Arc::new(Service::fresh().await), ())
}

mamparo_durable::event_conformance!(fresh);
