//! Forgetting what ended long ago.

use mamparo_durable::machine::Utc;
use rusqlite::{Connection, params};

use super::error::Failed;

pub(super) const OVER: &str =
    "SELECT number, state, attempt_current FROM mamparo_durable INDEXED BY mamparo_durable_over
    WHERE ended IS NOT NULL AND updated_at <= ?1 ORDER BY updated_at LIMIT ?2";

/// All of one transaction.
pub(super) const FORGET: [&str; 3] = [
    "DELETE FROM mamparo_durable_event WHERE of = ?1",
    "DELETE FROM mamparo_durable_request WHERE number = ?1",
    "DELETE FROM mamparo_durable WHERE number = ?1",
];

const COUNT: &str = "UPDATE mamparo_durable_ended SET transactions = transactions - 1 WHERE state = ?1 AND attempt = ?2";

/// Finds what was at its end by then, the first to end first: its number, and as what it is counted.
pub(super) fn find(
    file: &Connection,
    ended_by: Utc,
    limit: usize,
) -> Result<Vec<(i64, String, i64)>, Failed> {
    let mut asked = file.prepare_cached(OVER)?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let over = asked.query_map(params![ended_by.millis(), limit], |row| {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?))
    })?;
    Ok(over.collect::<Result<_, _>>()?)
}

/// Forgets it.
pub(super) fn all(file: &Connection, ended_by: Utc, limit: usize) -> Result<u64, Failed> {
    let over = find(file, ended_by, limit)?;
    for (number, state, attempt) in &over {
        for sql in FORGET {
            file.prepare_cached(sql)?.execute([number])?;
        }
        file.prepare_cached(COUNT)?
            .execute(params![state, attempt])?;
    }
    Ok(over.len() as u64)
}
