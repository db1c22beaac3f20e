//! Forgetting what ended long ago.

use mamparo_durable::backend::BackendError;
use mamparo_durable::machine::Utc;
use sqlx::query_scalar;

use crate::database::Database;

/// Removes transactions, their history and their count, the first to end first; what another engine is removing is left to it.
const FORGET: &str = "\
WITH old AS MATERIALIZED (
    SELECT transaction_id, state, attempt_current FROM transactions
    WHERE ended IS NOT NULL AND updated_at <= $1 ORDER BY updated_at LIMIT $2 FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM transactions t USING old WHERE t.transaction_id = old.transaction_id
), told AS (
    DELETE FROM history h USING old WHERE h.transaction_id = old.transaction_id
), counted AS (
    INSERT INTO tally (state, attempt, change) SELECT state, attempt_current, -count(*) FROM old GROUP BY state, attempt_current
)
SELECT count(*) FROM old";

/// By name, with as many parameters as it takes: for the tests that ask how it is planned.
#[cfg(test)]
pub(crate) const STATEMENTS: [(&str, &str, usize); 1] = [("forget", FORGET, 2)];

pub(crate) async fn forget(
    database: &Database,
    ended_by: Utc,
    limit: usize,
) -> Result<u64, BackendError> {
    let forget = database.with(move |connection| {
        let statement = query_scalar::<_, i64>(FORGET)
            .bind(ended_by.millis())
            .bind(i64::try_from(limit).unwrap_or(i64::MAX));
        Box::pin(statement.fetch_one(connection))
    });
    Ok(forget.await?.cast_unsigned())
}
