//! A dependency that is late now and then, without a hedge and with one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use http::StatusCode;
use mamparo::hedge::HedgePolicy;
use mamparo::replay::ATTEMPT_HEADER;
use mamparo::retry::RetryPolicy;
use mamparo_core::{BoxError, clock};
use serde::Serialize;
use tokio::task::JoinSet;

use super::load::{Call, call, percentile};
use crate::demo::cast::text;
use crate::demo::client::{Observed, stack, via_hyper};
use crate::demo::peer::{Peer, Reply};
use crate::telemetry::Pipeline;
use crate::trace::ms;

/// As many requests are made, so many at once.
const REQUESTS: u32 = 120;
const AT_ONCE: u32 = 6;

/// One request in so many is late the first time, by this much.
const LATE_ONE_IN: u32 = 20;
const LATE: Duration = Duration::from_millis(600);

/// The others take this long.
const ANSWERS: Duration = Duration::from_millis(5);

/// A request is sent again beside the first after this: longer than a busy machine takes for an answer.
const DELAY: Duration = Duration::from_millis(120);

const WAITS: Duration = Duration::from_secs(2);

/// How the callers fared.
#[derive(Debug, Serialize)]
pub(super) struct Tail {
    pub(super) hedge: bool,
    pub(super) requests: u32,
    /// As many requests reached the dependency.
    pub(super) sent: u32,
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
}

/// Sends the same traffic to two dependencies at once: one without and one with a hedge.
pub(super) async fn tails(telemetry: &Pipeline) -> Result<Vec<Tail>, BoxError> {
    let plain = stack(telemetry, "search", WAITS, WAITS)?;
    let once = RetryPolicy::builder().max_attempts(1);
    let hedge = HedgePolicy::builder().fixed(DELAY);
    let without = plain.clone().retry(once.build()?);
    let with = plain.hedge(hedge.build()?);
    let (without, with) = tokio::join!(tail(&without, false), tail(&with, true));
    Ok(vec![without?, with?])
}

async fn tail(stack: &Observed, hedge: bool) -> Result<Tail, BoxError> {
    let sent = Arc::new(AtomicU32::new(0));
    let peer = search(Arc::clone(&sent)).await?;
    let client = via_hyper(stack);
    let url = peer.url("/search?q=bulkhead");
    let began = clock::now();
    let mut callers = JoinSet::new();
    for _ in 0..AT_ONCE {
        let (client, url) = (client.clone(), url.clone());
        callers.spawn(async move {
            let mut calls = Vec::new();
            for _ in 0..REQUESTS / AT_ONCE {
                calls.push(call(client.clone(), &url, began).await?);
            }
            Ok::<Vec<Call>, BoxError>(calls)
        });
    }
    let mut calls = Vec::new();
    while let Some(more) = callers.join_next().await {
        calls.extend(more??);
    }
    Ok(Tail {
        hedge,
        requests: REQUESTS,
        sent: sent.load(Relaxed),
        p50_ms: ms(percentile(&calls, 0.5)),
        p99_ms: ms(percentile(&calls, 0.99)),
    })
}

/// Late by no fault of the request: what is sent again is answered in time.
async fn search(sent: Arc<AtomicU32>) -> Result<Peer, BoxError> {
    let originals = AtomicU32::new(0);
    let peer = Peer::start(move |request| {
        sent.fetch_add(1, Relaxed);
        let found = text(StatusCode::OK, "3 results\n".to_owned());
        let again = request.headers.contains_key(ATTEMPT_HEADER);
        let is_late = !again && originals.fetch_add(1, Relaxed) % LATE_ONE_IN == LATE_ONE_IN - 1;
        Reply::Late(if is_late { LATE } else { ANSWERS }, found)
    });
    Ok(peer.await?)
}
