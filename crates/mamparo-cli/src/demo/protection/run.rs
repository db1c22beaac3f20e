//! One scene after the other.

use mamparo_core::BoxError;
use serde::Serialize;

use super::breaker::{Outage, outage};
use super::bulkhead::{Starved, starve};
use super::hedge::{Tail, tails};
use super::partial::{Pages, pages};
use crate::telemetry::Pipeline;

/// What came of each scene.
#[derive(Debug, Serialize)]
pub(in crate::demo) struct Protection {
    pub(in crate::demo) breaker: Outage,
    pub(super) bulkhead: Vec<Starved>,
    pub(super) hedge: Vec<Tail>,
    pub(super) fallback: Pages,
}

/// Plays the scenes; one at a time, so that none disturbs another's figures.
pub(in crate::demo) async fn protect(telemetry: &Pipeline) -> Result<Protection, BoxError> {
    Ok(Protection {
        breaker: outage(telemetry).await?,
        bulkhead: starve(telemetry).await?,
        hedge: tails(telemetry).await?,
        fallback: pages(telemetry).await?,
    })
}
