//! The rate of all engines on the same tables.

use std::time::Duration;

use mamparo::rate_limit::{Ask, Granted, LimitStore, Taking};
use mamparo_core::BoxError;
use sqlx::postgres::PgConnection;
use sqlx::query_as;

use crate::Postgres;

/// Takes a cost, and more if there is, or nothing. Those that ask at once wait for each other at the row; no row, no answer. Nothing of
/// it needs an fsync: lost with the server, one burst passes too early.
const TAKE: &str = "\
WITH kept AS MATERIALIZED (
    SELECT full_at FROM limits
    WHERE key = $1 AND (SELECT set_config('synchronous_commit', 'off', true)) = 'off' FOR UPDATE
), debt AS MATERIALIZED (
    SELECT now, full_at, $2::bigint * $3::bigint AS whole, least(greatest(full_at - now, 0), $2::bigint * $3::bigint) AS debt
    FROM kept, LATERAL (SELECT (extract(epoch FROM clock_timestamp()) * 1000000000)::bigint AS now WHERE full_at IS NOT NULL) clock
), taken AS MATERIALIZED (
    SELECT debt.*, CASE WHEN (whole - debt) / $2 >= $4 THEN least((whole - debt) / $2, $5) ELSE 0 END AS taken FROM debt
), put AS (
    UPDATE limits l SET full_at = now + debt + taken * $2 FROM taken
    WHERE key = $1 AND (taken > 0 OR taken.full_at > now + whole)
)
SELECT taken, debt + taken * $2 FROM taken";

const MAKE: &str = "INSERT INTO limits (key, full_at) VALUES ($1, 0) ON CONFLICT DO NOTHING";

/// By name, with as many parameters as it takes: for the tests that ask how it is planned.
#[cfg(test)]
pub(crate) const STATEMENTS: [(&str, &str, usize); 1] = [("limit", TAKE, 5)];

/// Not the tables itself: its keys are neither named nor pruned, which does for the two limits of the engines, and not for one a caller.
#[derive(Debug)]
pub(crate) struct EngineLimits(pub(crate) Postgres);

impl LimitStore for EngineLimits {
    fn take(&self, ask: Ask) -> Taking<'_> {
        Box::pin(async move {
            let taken = self
                .0
                .database()
                .with(move |connection| Box::pin(take(connection, ask)))
                .await;
            taken.map_err(BoxError::from)
        })
    }
}

async fn take(connection: &mut PgConnection, ask: Ask) -> Result<Granted, sqlx::Error> {
    let big = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    loop {
        let taken: Option<(i64, i64)> = query_as(TAKE)
            .bind(&ask.key[..])
            .bind(big(ask.interval.max(1)))
            .bind(i64::from(ask.burst))
            .bind(i64::from(ask.cost))
            .bind(i64::from(ask.cost.saturating_add(ask.more)))
            .fetch_optional(&mut *connection)
            .await?;
        if let Some((taken, debt)) = taken {
            return Ok(Granted {
                taken: u32::try_from(taken).unwrap_or(0),
                full_in: Duration::from_nanos(u64::try_from(debt).unwrap_or(0)),
            });
        }
        sqlx::query(MAKE)
            .bind(&ask.key[..])
            .execute(&mut *connection)
            .await?;
    }
}
