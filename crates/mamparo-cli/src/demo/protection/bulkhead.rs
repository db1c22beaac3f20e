//! A slow dependency beside a healthy one, without a bulkhead and with one.

use std::time::Duration;

use http::StatusCode;
use mamparo::bulkhead::BulkheadPolicy;
use mamparo::retry::RetryPolicy;
use mamparo_core::{BoxError, InvalidSetting};
use serde::Serialize;

use super::gateway::Gateway;
use super::load::{Call, End, offer, percentile};
use crate::demo::cast::text;
use crate::demo::client::{Observed, stack, via_hyper};
use crate::demo::peer::{Peer, Reply};
use crate::telemetry::Pipeline;
use crate::trace::ms;

/// How slow the slow one is, and how long the gateway waits for it.
const SLOW: Duration = Duration::from_secs(2);
const GATEWAY_WAITS: Duration = Duration::from_millis(700);

/// How long a customer waits.
const CUSTOMER_WAITS: Duration = Duration::from_millis(1_000);

/// One request for the healthy dependency in each, and one for the slow one.
const PACE: Duration = Duration::from_millis(16);

/// How long requests are made.
const LASTS: Duration = Duration::from_millis(1_000);

/// As many calls of the slow dependency as may be under way, where there is a bulkhead.
const PLACES: usize = 4;

/// How the healthy dependency's callers fared.
#[derive(Debug, Serialize)]
pub(super) struct Starved {
    /// Whether there was a bulkhead around the slow one.
    pub(super) bulkhead: bool,
    pub(super) healthy: u32,
    pub(super) answered: u32,
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
}

/// Sends the same traffic to two gateways at once: one without and one with a bulkhead.
pub(super) async fn starve(telemetry: &Pipeline) -> Result<Vec<Starved>, BoxError> {
    let late = || text(StatusCode::OK, "a report\n".to_owned());
    let slow = Peer::start(move |_| Reply::Late(SLOW, late())).await?;
    let fast = || text(StatusCode::OK, "9.99\n".to_owned());
    let healthy = Peer::start(move |_| Reply::Answer(fast())).await?;
    let open = BulkheadPolicy::off();
    let closed = BulkheadPolicy::builder().limit(PLACES).max_waiting(0);
    let (without, with) = tokio::join!(
        traffic(telemetry, &slow, &healthy, open),
        traffic(telemetry, &slow, &healthy, closed.build()?),
    );
    Ok(vec![
        Starved::of(false, &without?),
        Starved::of(true, &with?),
    ])
}

/// Returns the calls that were for the healthy dependency.
async fn traffic(
    telemetry: &Pipeline,
    slow: &Peer,
    healthy: &Peer,
    around_slow: BulkheadPolicy,
) -> Result<Vec<Call>, BoxError> {
    let reports = once(telemetry, "reports", GATEWAY_WAITS)?.bulkhead(around_slow);
    let prices = once(telemetry, "prices", GATEWAY_WAITS)?;
    let gateway = Gateway::open(
        (via_hyper(&reports), slow.url("/reports/1")),
        (via_hyper(&prices), healthy.url("/prices/1")),
    )
    .await?;
    let customer = via_hyper(&once(telemetry, "gateway", CUSTOMER_WAITS)?);
    let (for_slow, for_healthy) = (gateway.url("/slow"), gateway.url("/healthy"));
    let over = |at| at >= LASTS;
    let (slow, healthy) = tokio::join!(
        offer(customer.clone(), &for_slow, PACE, over),
        offer(customer, &for_healthy, PACE, over),
    );
    slow?;
    healthy
}

fn once(telemetry: &Pipeline, name: &str, waits: Duration) -> Result<Observed, InvalidSetting> {
    let retry = RetryPolicy::builder().max_attempts(1);
    let stack = stack(telemetry, name, waits, waits)?.retry(retry.build()?);
    Ok(stack.bulkhead(BulkheadPolicy::off()))
}

impl Starved {
    fn of(bulkhead: bool, calls: &[Call]) -> Self {
        let answered = calls.iter().filter(|call| call.end == End::Answered);
        Self {
            bulkhead,
            healthy: calls.len() as u32,
            answered: answered.count() as u32,
            p50_ms: ms(percentile(calls, 0.5)),
            p99_ms: ms(percentile(calls, 0.99)),
        }
    }
}
