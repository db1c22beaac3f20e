//! From well to trouble, until it is stopped.

use std::net::SocketAddr;
use std::time::Duration;

use mamparo_core::BoxError;

use super::outbox::Outboxes;
use super::payments::Payments;
use super::queue::Queue;
use super::shop::Shop;
use crate::exit::Exit;
use crate::output;
use crate::page::Page;

/// Runs `mamparo demo --metrics`.
pub(in crate::demo) async fn live(
    at: SocketAddr,
    well: Duration,
    amqp: Option<&str>,
) -> Result<Exit, BoxError> {
    let stopped = mamparo::serve::termination()?;
    let cannot = |error| format!("metrics can't be served at {at}: {error}");
    let page = Page::at(at).await.map_err(cannot)?;
    let shop = Shop::open(&page).await?;
    let (payments, begun) = Payments::open(&shop.metrics)?;
    let outboxes = Outboxes::open(&shop.metrics)?;
    let queue = match amqp {
        Some(url) => Some(Queue::open(url, &shop.metrics).await?),
        None => None,
    };
    output::say(&format!("metrics at http://{}/metrics", page.address));
    output::say(&format!("well for {}", humantime::format_duration(well)));
    let trouble = async {
        tokio::time::sleep(well).await;
        output::say("in trouble from now on; Ctrl-C stops it");
        shop.make_trouble();
        outboxes.make_trouble().await?;
        if let Some(queue) = &queue {
            queue.make_trouble().await?;
        }
        payments.make_trouble().await?;
        std::future::pending().await
    };
    tokio::select! {
        () = stopped => Ok(Exit::Success),
        failed = trouble => failed,
        ended = begun => ended.map(|()| Exit::Success),
    }
}
