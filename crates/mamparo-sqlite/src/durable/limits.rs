//! The rate of all engines on one file.

use std::time::UNIX_EPOCH;

use mamparo::rate_limit::{Ask, Granted, LimitStore, Taking};
use mamparo_core::BoxError;
use rusqlite::{Connection, OptionalExtension, params};

use super::SqliteDurable;
use super::error::Failed;

const FIND: &str = "SELECT full_at FROM mamparo_durable_limit WHERE key = ?1";

const KEEP: &str = "INSERT INTO mamparo_durable_limit (key, full_at) VALUES (?1, ?2)
    ON CONFLICT (key) DO UPDATE SET full_at = excluded.full_at";

/// Not the file itself: its keys are neither named nor pruned, which does for the two limits of the engines, and not for one a caller.
#[derive(Debug)]
pub(super) struct EngineLimits(pub(super) SqliteDurable);

impl LimitStore for EngineLimits {
    fn take(&self, ask: Ask) -> Taking<'_> {
        Box::pin(async move {
            let taken = self
                .0
                .write(move |file, this| take(file, &ask, this.nanos()));
            taken.await.map_err(|failed| BoxError::from(failed.0))
        })
    }
}

impl SqliteDurable {
    fn nanos(&self) -> u64 {
        let since = self.clock().now().duration_since(UNIX_EPOCH);
        u64::try_from(since.unwrap_or_default().as_nanos()).unwrap_or(u64::MAX)
    }
}

/// Takes; nothing is written where nothing changed.
fn take(file: &Connection, ask: &Ask, now: u64) -> Result<Granted, Failed> {
    let mut asked = file.prepare_cached(FIND)?;
    let kept: Option<i64> = asked.query_row([ask.key], |row| row.get(0)).optional()?;
    let kept = kept.map_or(0, |kept| u64::try_from(kept).unwrap_or(0));
    let (granted, full_at) = ask.grant(kept, now);
    if full_at != kept {
        let full_at = i64::try_from(full_at).unwrap_or(i64::MAX);
        file.prepare_cached(KEEP)?
            .execute(params![ask.key, full_at])?;
    }
    Ok(granted)
}
