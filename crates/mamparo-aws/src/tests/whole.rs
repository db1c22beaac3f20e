//! The suite that every backend runs, over all of it: store, queues, scheduler and outbox.

use mamparo_durable::backend::Backend;

use super::resources;
use crate::Aws;
use crate::store::tests::support::make_tables;

async fn fresh() -> (Backend, Aws) {
    let aws = resources::fresh().await;
    make_tables(&aws).await;
    (aws.backend().await.unwrap(), aws)
}

mamparo_durable::conformance!(fresh);
