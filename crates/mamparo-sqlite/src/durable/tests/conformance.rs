//! The suite that every backend runs.

use mamparo_durable::backend::Backend;
use mamparo_durable::conformance::REDELIVERY_LIMIT;
use tempfile::TempDir;

use crate::durable::SqliteDurable;

async fn fresh() -> (Backend, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let file = SqliteDurable::builder(folder.path().join("engine.db"));
    let file = file.redelivery_limit(REDELIVERY_LIMIT).open().unwrap();
    (file.backend(), folder)
}

mamparo_durable::conformance!(fresh);
