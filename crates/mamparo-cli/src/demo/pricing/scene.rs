//! A stream of prices that ends with its deadline.

use std::time::Duration;

use mamparo_core::grpc::Code;
use mamparo_core::{BoxError, clock};
use serde::Serialize;

use super::generated::Item;
use super::generated::prices_client::PricesClient;
use super::server::Pricing;
use crate::demo::client::{rpc_stack, via_tonic};
use crate::telemetry::Pipeline;

/// How long prices are watched.
pub(super) const WATCHES: Duration = Duration::from_millis(300);

/// What whoever watched saw of it.
#[derive(Debug, Serialize)]
pub(in crate::demo) struct Watched {
    pub(super) prices: u32,
    /// How it ended; none if it came to an end by itself.
    pub(super) status: Option<&'static str>,
    pub(super) after_ms: u64,
    #[serde(skip)]
    pub(super) gave_up: Option<clock::Instant>,
}

/// Watches prices that are told for ever.
pub(in crate::demo) async fn watch(
    telemetry: &Pipeline,
    pricing: &Pricing,
) -> Result<Watched, BoxError> {
    let stack = rpc_stack(telemetry, "pricing", WATCHES, WATCHES)?;
    let mut prices = PricesClient::new(via_tonic(&stack, pricing.origin()?));
    let began = clock::now();
    let mut told = prices.watch(Item { number: 7 }).await?.into_inner();
    let mut watched = Watched {
        prices: 0,
        status: None,
        after_ms: 0,
        gave_up: None,
    };
    loop {
        match told.message().await {
            Ok(Some(_)) => watched.prices += 1,
            Ok(None) => break,
            Err(status) => {
                let code = Code::from_number(status.code().into());
                watched.status = Some(code.as_str());
                break;
            }
        }
    }
    let now = clock::now();
    watched.gave_up = Some(now);
    watched.after_ms = u64::try_from((now - began).as_millis())?;
    Ok(watched)
}
