//! The suite that every backend runs: a schema for each case.

use mamparo_durable::backend::Backend;
use mamparo_durable::conformance::REDELIVERY_LIMIT;

use super::support::fresh_with;
use crate::Postgres;

async fn fresh() -> (Backend, Postgres) {
    let postgres = fresh_with(|settings| settings.redelivery_limit(REDELIVERY_LIMIT)).await;
    (postgres.backend(), postgres)
}

mamparo_durable::conformance!(fresh);
