//! What people and the reconciler ask.

use std::time::Duration;

use bytes::Bytes;
use mamparo_durable::backend::{BackendError, Census, Count, Filter};
use mamparo_durable::machine::{AuditEvent, Patience, Record, State, TransactionId, Utc};
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{Error, QueryBuilder, Row as _, query, query_scalar};

use super::record::{columns, event, instant, number, record, small};
use crate::database::{Database, corrupt};

const REQUEST: &str = "SELECT request FROM transactions WHERE transaction_id = $1";

const HISTORY: &str = "\
SELECT at, from_state, to_state, attempt, seq, fire_at, cause, reason
FROM history WHERE transaction_id = $1 ORDER BY number OFFSET $2 LIMIT $3";

/// Each state by its own index, the oldest of each; then the oldest of all.
const STUCK: &str = concat!(
    "SELECT * FROM ((SELECT ",
    columns!(),
    " FROM transactions \
    WHERE ended IS NULL AND state <> 'SCHEDULED' AND state = 'IN_FLIGHT' AND updated_at <= $1 ORDER BY updated_at LIMIT $5) \
    UNION ALL (SELECT ",
    columns!(),
    " FROM transactions \
    WHERE ended IS NULL AND state <> 'SCHEDULED' AND state = 'SCHEDULING' AND updated_at <= $2 ORDER BY updated_at LIMIT $5) \
    UNION ALL (SELECT ",
    columns!(),
    " FROM transactions \
    WHERE ended IS NULL AND state <> 'SCHEDULED' AND state = 'SENDING' AND updated_at <= $3 ORDER BY updated_at LIMIT $5) \
    UNION ALL (SELECT ",
    columns!(),
    " FROM transactions \
    WHERE ended IS NULL AND state = 'SCHEDULED' AND next_fire_at <= $4 AND updated_at <= $4 \
    ORDER BY next_fire_at LIMIT $5)) AS stuck \
    ORDER BY updated_at LIMIT $5"
);

const COUNTS: &str = "\
SELECT state, attempt, sum(change)::bigint FROM tally GROUP BY state, attempt HAVING sum(change) > 0";

const OLDEST: &str = "SELECT min(created_at) FROM transactions WHERE ended IS NULL";

const OVERDUE: &str = "\
SELECT count(*), min(next_fire_at) FROM (
    SELECT next_fire_at FROM transactions WHERE ended IS NULL AND state = 'SCHEDULED' AND next_fire_at < $1
    UNION ALL
    SELECT next_fire_at FROM transactions
    WHERE ended IS NULL AND state <> 'SCHEDULED' AND state = 'SCHEDULING' AND next_fire_at < $1
) AS overdue";

/// By name, with as many parameters as they take: for the tests that ask how they are planned.
#[cfg(test)]
pub(crate) const STATEMENTS: [(&str, &str, usize); 6] = [
    ("load", super::record::LOAD, 1),
    ("request", REQUEST, 1),
    ("read history", HISTORY, 3),
    ("stuck", STUCK, 5),
    ("oldest", OLDEST, 0),
    ("overdue", OVERDUE, 1),
];

/// Reads what a transaction sends.
pub(crate) async fn request(
    database: &Database,
    id: TransactionId,
) -> Result<Option<Bytes>, BackendError> {
    let read = database.with(move |connection| {
        let statement = query_scalar::<_, Vec<u8>>(REQUEST).bind(id.as_str().to_owned());
        Box::pin(statement.fetch_optional(connection))
    });
    Ok(read.await?.map(Bytes::from))
}

/// Reads a transaction's history.
pub(crate) async fn history(
    database: &Database,
    id: TransactionId,
    skip: usize,
    limit: usize,
) -> Result<Vec<AuditEvent>, BackendError> {
    let name = id.as_str().to_owned();
    let read = database.with(move |connection| {
        let statement = query(HISTORY).bind(name).bind(many(skip)).bind(many(limit));
        Box::pin(statement.fetch_all(connection))
    });
    let unread = |what| {
        corrupt(format!(
            "the history of transaction {id} can't be read: {what}"
        ))
    };
    read.await?
        .iter()
        .map(|row| event(row).map_err(unread))
        .collect()
}

fn many(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Finds what sits in a state for too long. What can't be read is left out: whoever loads it hears of it.
pub(crate) async fn stuck(
    database: &Database,
    now: Utc,
    patience: Patience,
    limit: usize,
) -> Result<Vec<Record>, BackendError> {
    let read = database.with(move |connection| {
        let statement = query(STUCK)
            .bind(before(now, patience.in_flight))
            .bind(before(now, patience.scheduling))
            .bind(before(now, patience.sending))
            .bind(before(now, patience.scheduled))
            .bind(many(limit));
        Box::pin(statement.fetch_all(connection))
    });
    readable(&read.await?)
}

/// What was written then has been so for that long. Without any patience everything has, whatever a clock does.
fn before(now: Utc, patience: Duration) -> i64 {
    let millis = i64::try_from(patience.as_millis()).unwrap_or(i64::MAX);
    if millis == 0 {
        i64::MAX
    } else {
        now.millis().saturating_sub(millis)
    }
}

fn readable(rows: &[PgRow]) -> Result<Vec<Record>, BackendError> {
    let mut records = Vec::with_capacity(rows.len());
    for row in rows {
        let (_, read) = record(row).map_err(crate::database::trouble)?;
        records.extend(read);
    }
    Ok(records)
}

/// Lists transactions by id.
pub(crate) async fn list(
    database: &Database,
    filter: Filter,
    limit: usize,
) -> Result<Vec<Record>, BackendError> {
    let read = database.with(move |connection| Box::pin(listed(connection, filter, limit)));
    readable(&read.await?)
}

async fn listed(
    connection: &mut PgConnection,
    filter: Filter,
    limit: usize,
) -> Result<Vec<PgRow>, Error> {
    let mut statement = QueryBuilder::new(concat!(
        "SELECT ",
        columns!(),
        " FROM transactions WHERE true"
    ));
    if let Some(state) = filter.state {
        statement.push(" AND state = ").push_bind(state.as_str());
        statement.push(if state.is_terminal() {
            " AND ended IS NOT NULL"
        } else {
            " AND ended IS NULL"
        });
    }
    if let Some(kind) = filter.kind {
        statement
            .push(" AND kind = ")
            .push_bind(kind.as_str().to_owned());
    }
    if let Some(dependency) = filter.dependency {
        statement
            .push(" AND dependency = ")
            .push_bind(dependency.as_str().to_owned());
    }
    if let Some(after) = filter.after {
        statement
            .push(" AND transaction_id > ")
            .push_bind(after.as_str().to_owned());
    }
    statement
        .push(" ORDER BY transaction_id LIMIT ")
        .push_bind(many(limit));
    statement.build().fetch_all(connection).await
}

/// Counts transactions.
pub(crate) async fn census(database: &Database, now: Utc) -> Result<Census, BackendError> {
    let read = database.with(move |connection| Box::pin(counted(connection, now)));
    let (counts, oldest, (overdue, since)) = read.await?;
    let unread = |what| corrupt(format!("the counts can't be read: {what}"));
    let mut census = Census::default();
    for (state, attempt, transactions) in counts {
        let state = State::parse(&state).ok_or_else(|| unread(format!("a state is {state:?}")))?;
        let attempt = small(attempt).map_err(unread)?;
        census.counts.push(Count {
            state,
            attempt,
            transactions: number(transactions),
        });
    }
    census.counts.sort_unstable();
    census.oldest = oldest.map(instant).transpose().map_err(unread)?;
    census.overdue_since = since.map(instant).transpose().map_err(unread)?;
    census.overdue = number(overdue);
    Ok(census)
}

type Counted = (Vec<(String, i64, i64)>, Option<i64>, (i64, Option<i64>));

async fn counted(connection: &mut PgConnection, now: Utc) -> Result<Counted, Error> {
    let rows = query(COUNTS).fetch_all(&mut *connection).await?;
    let counts: Result<Vec<_>, Error> = rows
        .iter()
        .map(|row| Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?)))
        .collect();
    let oldest = query_scalar(OLDEST).fetch_one(&mut *connection).await?;
    let overdue = query(OVERDUE)
        .bind(now.millis())
        .fetch_one(connection)
        .await?;
    Ok((counts?, oldest, (overdue.try_get(0)?, overdue.try_get(1)?)))
}
