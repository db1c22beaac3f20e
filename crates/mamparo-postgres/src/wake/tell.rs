//! Notifies other engines.

use std::sync::Arc;
use std::time::Duration;

use mamparo_core::clock::WallClock;
use mamparo_durable::machine::Utc;
use sqlx::query;

use super::{Ready, Wake};
use crate::database::Database;
use crate::settings::LONGEST_POLL;

/// What is written in so long is told at once.
const GATHER: Duration = Duration::from_millis(2);

/// Tells others of what was written, for ever. What is due later than their polls is not told: they find it in time.
pub(crate) async fn tell(
    database: Database,
    wake: Arc<Wake>,
    clock: Arc<dyn WallClock>,
    channel: String,
) {
    loop {
        let mut ready = wake.untold().await;
        let soon = Utc::of(&*clock).plus(LONGEST_POLL).millis();
        let mut told = Ready::default();
        ready
            .before(soon)
            .for_each(|(queue, at)| told.at(queue, at));
        if told.is_never() {
            continue;
        }
        tokio::time::sleep(GATHER).await;
        ready = told;
        let (channel, text) = (channel.clone(), ready.to_text(wake.sender()));
        let sent = database.with(move |connection| {
            let notify = query("SELECT pg_notify($1, $2)").bind(channel).bind(text);
            Box::pin(notify.execute(connection))
        });
        // A lost one is found by the others' polls.
        drop(sent.await);
    }
}
