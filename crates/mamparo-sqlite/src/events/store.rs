//! The file, as a relay sees it.

use std::time::Duration;

use mamparo_durable::backend::{BackendError, BoxFuture};
use mamparo_durable::events::{Backlog, ClaimId, Claimed, EventStore, ParkedEvent, Settlement};
use mamparo_durable::machine::Utc;
use rusqlite::OptionalExtension as _;
use tokio::time::timeout;

use super::{SqliteEvents, claim};
use crate::durable::Failed;

impl EventStore for SqliteEvents {
    fn claim(&self, limit: usize, lease: Duration) -> BoxFuture<'_, Result<Claimed, BackendError>> {
        let now = self.now();
        Box::pin(self.write(move |file| Ok(claim::claim(file, now, limit, lease)?)))
    }

    fn settle(
        &self,
        id: ClaimId,
        settled: Vec<(i64, Settlement)>,
    ) -> BoxFuture<'_, Result<usize, BackendError>> {
        let now = self.now();
        Box::pin(self.write(move |file| Ok(claim::settle(file, now, id, settled)?)))
    }

    fn ready(&self, longest: Duration) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            // What another process has put is found when the time is over.
            drop(timeout(longest, self.shared.changed.notified()).await);
        })
    }

    fn backlog(&self) -> BoxFuture<'_, Result<Backlog, BackendError>> {
        Box::pin(self.read(|file| {
            let count = |condition: &str| -> Result<u64, Failed> {
                let most = Backlog::COUNTED;
                let count = format!(
                    "SELECT count(*) FROM (SELECT 1 FROM mamparo_events WHERE parked_at IS {condition} LIMIT {most})"
                );
                let count: u32 = file.prepare_cached(&count)?.query_row([], |row| row.get(0))?;
                Ok(u64::from(count))
            };
            let oldest = file
                .prepare_cached(
                    "SELECT created_at FROM mamparo_events WHERE parked_at IS NULL ORDER BY number LIMIT 1",
                )?
                .query_row([], |row| row.get(0))
                .optional()?;
            let oldest = oldest.map(|millis| Utc::from_millis(millis).unwrap_or(Utc::MIN));
            Ok(Backlog::new(count("NULL")?, count("NOT NULL")?, oldest))
        }))
    }

    fn parked(
        &self,
        after: i64,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<ParkedEvent>, BackendError>> {
        Box::pin(self.read(move |file| Ok(claim::parked(file, after, limit)?)))
    }

    fn unpark(&self, numbers: Vec<i64>) -> BoxFuture<'_, Result<usize, BackendError>> {
        Box::pin(async move {
            let unparked = self
                .write(move |file| Ok(claim::unpark(file, &numbers)?))
                .await;
            self.shared.changed.notify_one();
            unparked
        })
    }

    fn discard(&self, numbers: Vec<i64>) -> BoxFuture<'_, Result<usize, BackendError>> {
        Box::pin(async move {
            let discarded = self
                .write(move |file| Ok(claim::discard(file, &numbers)?))
                .await;
            // What waited behind them may go on.
            self.shared.changed.notify_one();
            discarded
        })
    }
}
