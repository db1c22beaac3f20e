//! What was processed.

use std::sync::atomic::Ordering;

use mamparo_durable::events::Seen;
use mamparo_durable::machine::Utc;
use rusqlite::{Connection, params};

use super::file::Shared;

/// With the first message and after so many more each time, at most so many are forgotten: more than come, so that the table shrinks.
pub(super) const SWEEP_AFTER: u32 = 64;
const SWEEP: usize = 256;

pub(super) fn process(
    shared: &Shared,
    file: &Connection,
    consumer: &str,
    id: &str,
) -> rusqlite::Result<Seen> {
    let now = Utc::of(&*shared.clock);
    let mut note = file.prepare_cached(
        "INSERT INTO mamparo_inbox (consumer, id, at) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING",
    )?;
    if note.execute(params![consumer, id, now.millis()])? == 0 {
        return Ok(Seen::Before);
    }
    if shared.processed.fetch_add(1, Ordering::Relaxed) % SWEEP_AFTER == SWEEP_AFTER - 1 {
        // By the same instant, so that it does not forget itself.
        sweep(file, forgotten_before(shared, now), SWEEP)?;
    }
    Ok(Seen::First)
}

/// What was processed before then is not remembered.
pub(super) fn forgotten_before(shared: &Shared, now: Utc) -> i64 {
    let kept = i64::try_from(shared.keep_inbox.as_millis()).unwrap_or(i64::MAX);
    now.millis().saturating_sub(kept)
}

pub(super) fn sweep(file: &Connection, before: i64, limit: usize) -> rusqlite::Result<usize> {
    let mut forget = file.prepare_cached(
        "DELETE FROM mamparo_inbox WHERE (consumer, id) IN
             (SELECT consumer, id FROM mamparo_inbox WHERE at < ?1 ORDER BY at LIMIT ?2)",
    )?;
    forget.execute(params![before, i64::try_from(limit).unwrap_or(i64::MAX)])
}
