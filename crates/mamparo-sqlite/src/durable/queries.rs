//! What people and the reconciler ask of the transactions.

use std::time::Duration;

use mamparo_durable::backend::{Census, Count, Filter};
use mamparo_durable::machine::{AuditEvent, Label, Patience, Record, State, TransactionId, Utc};
use rusqlite::{Connection, Params, params};

use super::error::Failed;
use super::row::{self, COARSE, coarse, columns};

/// As many rows as one question reads.
const MAX_ROWS: usize = 100_000;

/// Where fewer than so many are in a state, they are sorted instead of looked for among all.
const FEW: i64 = 20_000;

pub(super) const BODY: &str =
    "SELECT body FROM mamparo_durable JOIN mamparo_durable_request USING (number) WHERE id = ?1";

fn rows(limit: usize) -> i64 {
    i64::try_from(limit.min(MAX_ROWS)).unwrap_or(i64::MAX)
}

/// Reads a transaction's history.
pub(super) fn history(
    file: &Connection,
    id: &TransactionId,
    skip: usize,
    limit: usize,
) -> Result<Vec<AuditEvent>, Failed> {
    let Some(number) = row::number(file, id)? else {
        return Ok(Vec::new());
    };
    let skip = i64::try_from(skip).unwrap_or(i64::MAX);
    let mut asked = file.prepare_cached(HISTORY)?;
    let mut events = asked.query(params![number, rows(limit), skip])?;
    let mut history = Vec::new();
    while let Some(event) = events.next()? {
        history.push(row::event(event, id)?);
    }
    Ok(history)
}

pub(super) const HISTORY: &str =
    "SELECT at, from_state, to_state, attempt, seq, fire_at, cause, reason
    FROM mamparo_durable_event WHERE of = ?1 ORDER BY number LIMIT ?2 OFFSET ?3";

/// Finds what sits where it should not.
pub(super) fn stuck(
    file: &Connection,
    now: Utc,
    patience: Patience,
    limit: usize,
) -> Result<Vec<Record>, Failed> {
    let mut stuck = Vec::new();
    for (state, patience) in [
        (State::InFlight, patience.in_flight),
        (State::Scheduling, patience.scheduling),
        (State::Scheduled, patience.scheduled),
        (State::Sending, patience.sending),
    ] {
        // One that can't be read is told when it is loaded, and hides no other.
        let mut asked = file.prepare_cached(STUCK)?;
        let mut found = asked.query(params![state.as_str(), before(now, patience), rows(limit)])?;
        while let Some(row) = found.next()? {
            stuck.extend(row::record(row));
        }
    }
    stuck.sort_by_key(|record| record.progress.updated_at);
    stuck.truncate(limit);
    Ok(stuck)
}

fn before(now: Utc, patience: Duration) -> i64 {
    let patience = i64::try_from(patience.as_millis()).unwrap_or(i64::MAX);
    now.millis().saturating_sub(patience)
}

pub(super) const STUCK: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM mamparo_durable INDEXED BY mamparo_durable_live
    WHERE ended IS NULL AND state = ?1 AND watched_from <= ?2 AND updated_at <= ?2 AND (state <> 'SCHEDULED' OR next_fire_at <= ?2)
    ORDER BY watched_from LIMIT ?3"
);

/// Lists what fits, by id. One that can't be read is left out.
pub(super) fn list(
    file: &Connection,
    filter: &Filter,
    limit: usize,
) -> Result<Vec<Record>, Failed> {
    let sql = match filter.state {
        Some(state) if !state.is_terminal() && is_rare(file, state)? => LIST_FEW,
        _ => LIST,
    };
    let mut asked = file.prepare_cached(sql)?;
    let mut found = asked.query(params![
        filter.after.as_ref().map_or("", TransactionId::as_str),
        filter.state.map(State::as_str),
        filter.kind.as_ref().map(Label::as_str),
        filter.dependency.as_ref().map(Label::as_str),
        rows(limit),
    ])?;
    let mut list = Vec::new();
    while let Some(row) = found.next()? {
        list.extend(row::record(row));
    }
    Ok(list)
}

fn is_rare(file: &Connection, state: State) -> Result<bool, Failed> {
    let mut asked = file.prepare_cached(RARE)?;
    let count: i64 = asked.query_row(params![state.as_str(), FEW], |row| row.get(0))?;
    Ok(count < FEW)
}

pub(super) const RARE: &str = "SELECT count(*) FROM
    (SELECT 1 FROM mamparo_durable INDEXED BY mamparo_durable_live WHERE ended IS NULL AND state = ?1 LIMIT ?2)";

macro_rules! listed {
    ($state:literal) => {
        concat!(
            $state,
            " AND id > ?1 AND (?3 IS NULL OR kind = ?3) AND (?4 IS NULL OR dependency = ?4) ORDER BY id LIMIT ?5"
        )
    };
}

pub(super) const LIST: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM mamparo_durable INDEXED BY mamparo_durable_id",
    listed!(" WHERE (?2 IS NULL OR state = ?2)")
);

pub(super) const LIST_FEW: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM mamparo_durable INDEXED BY mamparo_durable_live",
    listed!(" WHERE ended IS NULL AND state = ?2")
);

/// Counts what lives, and what is at its end from its own count.
pub(super) fn census(file: &Connection, now: Utc) -> Result<Census, Failed> {
    let mut census = Census::default();
    let mut asked = file.prepare_cached(COUNTS)?;
    let mut counts = asked.query([])?;
    while let Some(row) = counts.next()? {
        let state: String = row.get(0)?;
        // What can't be read is told when it is loaded.
        let attempt: i64 = row.get(1)?;
        if let (Some(state), Ok(attempt)) = (State::parse(&state), u32::try_from(attempt)) {
            census.counts.push(Count {
                state,
                attempt,
                transactions: row.get::<_, i64>(2)?.cast_unsigned(),
            });
        }
    }
    census.counts.sort_unstable();
    let first = |sql| -> Result<Option<Utc>, Failed> {
        let first: Option<i64> = file.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
        Ok(first.and_then(|first| Utc::from_millis(first).ok()))
    };
    census.oldest = first(OLDEST)?;
    let scheduling = counted(file, OVERDUE_SCHEDULING, [now.millis()])?;
    for (count, since) in [overdue(file, now)?, scheduling] {
        let since = since.and_then(|since| Utc::from_millis(since).ok());
        census.overdue += count.cast_unsigned();
        census.overdue_since = census.overdue_since.into_iter().chain(since).min();
    }
    Ok(census)
}

/// A count, and the first instant.
fn counted(
    file: &Connection,
    sql: &str,
    params: impl Params,
) -> Result<(i64, Option<i64>), Failed> {
    let mut asked = file.prepare_cached(sql)?;
    Ok(asked.query_row(params, |row| Ok((row.get(0)?, row.get(1)?)))?)
}

/// Counts what is SCHEDULED and overdue, and says since when: rows are read only where a stretch of time has to be told apart.
fn overdue(file: &Connection, now: Utc) -> Result<(i64, Option<i64>), Failed> {
    let present = coarse(now);
    let within = |from: i64| counted(file, OVERDUE_WITHIN, [from, from + COARSE, now.millis()]);
    let (past, first) = counted(file, OVERDUE, [present])?;
    let (count, since) = within(present)?;
    let since = match first {
        Some(first) => within(first)?.1,
        None => since,
    };
    Ok((past + count, since))
}

pub(super) const COUNTS: &str =
    "SELECT state, attempt_current, count(*) FROM mamparo_durable INDEXED BY mamparo_durable_live
        WHERE ended IS NULL GROUP BY state, attempt_current
    UNION ALL SELECT state, attempt, transactions FROM mamparo_durable_ended WHERE transactions > 0";

pub(super) const OLDEST: &str = "SELECT min(created_at) FROM mamparo_durable WHERE ended IS NULL";

pub(super) const OVERDUE: &str =
    "SELECT count(*), min(watched_from) FROM mamparo_durable INDEXED BY mamparo_durable_live
    WHERE ended IS NULL AND state = 'SCHEDULED' AND watched_from < ?1";

pub(super) const OVERDUE_WITHIN: &str =
    "SELECT count(*), min(next_fire_at) FROM mamparo_durable INDEXED BY mamparo_durable_live
    WHERE ended IS NULL AND state = 'SCHEDULED' AND watched_from >= ?1 AND watched_from < ?2 AND next_fire_at < ?3";

pub(super) const OVERDUE_SCHEDULING: &str =
    "SELECT count(*), min(next_fire_at) FROM mamparo_durable INDEXED BY mamparo_durable_live
    WHERE ended IS NULL AND state = 'SCHEDULING' AND next_fire_at < ?1";
