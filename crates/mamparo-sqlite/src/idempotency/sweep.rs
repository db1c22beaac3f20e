//! Removing keys that are past their retention, a little at a time.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use mamparo::idempotency::StoreError;
use mamparo_core::clock::{self, WallClock};
use rusqlite::{Connection, params};

use super::sql::{Millis, millis};
use crate::database::{Database, store_error};

/// As long as one batch may take: others wait meanwhile. What it has changed must be written and synced on top.
const LONGEST: Duration = Duration::from_millis(4);

/// The most that one batch of a store's own sweeping removes.
const BATCH: usize = 100;

/// The wait after a batch that was full, in which others write.
const BETWEEN: Duration = Duration::from_millis(10);

/// Removes at most `limit` keys, and stops early when it takes too long, but not before the first.
pub(super) fn sweep(
    connection: &Connection,
    limit: usize,
    now: Millis,
) -> Result<usize, StoreError> {
    let begun = clock::now();
    let mut due = connection
        .prepare_cached(
            "SELECT rowid FROM mamparo_idempotency WHERE expires_at <= ?1 ORDER BY expires_at LIMIT ?2",
        )
        .map_err(store_error)?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    // At most what is removed in that time, so that a large limit does not read a large index.
    let due = due
        .query_map(params![now, limit.min(10_000)], |row| row.get::<_, i64>(0))
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(store_error)?;
    let mut remove = connection
        .prepare_cached("DELETE FROM mamparo_idempotency WHERE rowid = ?1")
        .map_err(store_error)?;
    let mut swept = 0;
    for row in due {
        remove.execute([row]).map_err(store_error)?;
        swept += 1;
        if begun.elapsed() > LONGEST {
            break;
        }
    }
    Ok(swept)
}

/// Sweeps every so often, until the store is gone.
#[expect(clippy::needless_pass_by_value, reason = "the thread owns them")]
pub(super) fn keep_sweeping(
    database: Database,
    clock: Arc<dyn WallClock>,
    every: Duration,
    stop: Receiver<Infallible>,
) {
    let (told, swept) = sync_channel(1);
    let mut pause = every;
    while let Err(RecvTimeoutError::Timeout) = stop.recv_timeout(pause) {
        let (told, clock) = (told.clone(), clock.clone());
        let asked = database.writer.try_write(move |connection| {
            let count = sweep(connection, BATCH, millis(&*clock));
            let _gone = told.try_send(count.as_ref().copied().unwrap_or_default());
            count.map(drop)
        });
        // A full queue has more urgent things in it, and a write that fails is told to those who wait for one.
        let count = match asked {
            true => swept.recv_timeout(every).unwrap_or_default(),
            false => 0,
        };
        pause = if count >= BATCH / 2 { BETWEEN } else { every };
    }
}
