//! The file, as a relay sees it.

use std::time::Duration;

use mamparo_durable::backend::{BackendError, BoxFuture};
use mamparo_durable::events::{Backlog, ClaimId, Claimed, EventStore, ParkedEvent, Settlement};
use mamparo_durable::machine::Utc;
use rusqlite::OptionalExtension as _;
use tokio::time::timeout;

use super::{SqliteEvents, claim};
use crate::durable::Failed;

const WAITING: &str =
    "SELECT count(*) FROM (SELECT 1 FROM mamparo_events WHERE parked_at IS NULL LIMIT ?1)";
const PARKED: &str =
    "SELECT count(*) FROM (SELECT 1 FROM mamparo_events WHERE parked_at IS NOT NULL LIMIT ?1)";
const OLDEST: &str =
    "SELECT created_at FROM mamparo_events WHERE parked_at IS NULL ORDER BY number LIMIT 1";

/// What a look at the backlog asks, for the tests that ask how it is planned.
#[cfg(test)]
pub(super) const LOOKS: [&str; 3] = [WAITING, PARKED, OLDEST];

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
            let count = |sql: &str| -> Result<u64, Failed> {
                let mut count = file.prepare_cached(sql)?;
                let count: u32 = count.query_row([Backlog::COUNTED], |row| row.get(0))?;
                Ok(u64::from(count))
            };
            let mut oldest = file.prepare_cached(OLDEST)?;
            let oldest = oldest.query_row([], |row| row.get(0)).optional()?;
            let oldest = oldest.map(|millis| Utc::from_millis(millis).unwrap_or(Utc::MIN));
            Ok(Backlog::new(count(WAITING)?, count(PARKED)?, oldest))
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
