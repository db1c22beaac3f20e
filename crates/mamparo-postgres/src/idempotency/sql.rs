//! What is asked of the table, each in one statement.

use std::sync::Arc;
use std::time::Duration;

use mamparo::idempotency::{
    Begin, Fence, Fingerprint, KeyId, Lease, OnExpiry, Row, SealedAnswer, Written,
};
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{AssertSqlSafe, Error, Row as _, query, query_scalar};

/// The statements, each naming the table with its schema: a handler's own connection may look for tables elsewhere.
#[derive(Clone, Debug)]
pub(super) struct Statements {
    begin: Arc<str>,
    find: Arc<str>,
    renew: Arc<str>,
    complete: Arc<str>,
    release: Arc<str>,
    completed: Arc<str>,
    sweep: Arc<str>,
}

/// Starts an absent key, one past its retention, or, where that is asked for, one whose lease is over.
const BEGIN: &str = "\
INSERT INTO {keys} AS k (id, fence, fingerprint, lease_until, expires_at)
VALUES ($1, $2, $3, clock_timestamp() + $4 * interval '1 millisecond',
    clock_timestamp() + ($4 + $5) * interval '1 millisecond')
ON CONFLICT (id) DO UPDATE SET fence = excluded.fence, fingerprint = excluded.fingerprint,
    lease_until = excluded.lease_until, expires_at = excluded.expires_at, answer = NULL,
    runs = CASE WHEN k.expires_at <= clock_timestamp() THEN 1 ELSE k.runs + 1 END
WHERE k.expires_at <= clock_timestamp() OR ($6 AND k.answer IS NULL AND k.lease_until <= clock_timestamp()
    AND k.fingerprint = excluded.fingerprint AND k.fence <> excluded.fence)
RETURNING runs > 1";

const FIND: &str = "\
SELECT fence, fingerprint, greatest(0, ceil(extract(epoch FROM lease_until - clock_timestamp()) * 1000))::bigint, answer
FROM {keys} WHERE id = $1 AND expires_at > clock_timestamp()";

const RENEW: &str = "\
UPDATE {keys} SET lease_until = clock_timestamp() + $3 * interval '1 millisecond',
    expires_at = expires_at - lease_until + clock_timestamp() + $3 * interval '1 millisecond'
WHERE id = $1 AND fence = $2 AND answer IS NULL AND expires_at > clock_timestamp()";

const COMPLETE: &str = "\
UPDATE {keys} SET answer = $3, expires_at = clock_timestamp() + $4 * interval '1 millisecond'
WHERE id = $1 AND fence = $2 AND answer IS NULL AND expires_at > clock_timestamp()";

const RELEASE: &str = "\
DELETE FROM {keys} WHERE id = $1 AND fence = $2 AND answer IS NULL AND expires_at > clock_timestamp()";

const COMPLETED: &str = "\
SELECT EXISTS (
    SELECT FROM {keys} WHERE id = $1 AND fence = $2 AND answer IS NOT NULL AND expires_at > clock_timestamp()
)";

const SWEEP: &str = "\
WITH gone AS MATERIALIZED (
    SELECT id FROM {keys} WHERE expires_at <= clock_timestamp() ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED
)
DELETE FROM {keys} k USING gone WHERE k.id = gone.id";

/// By name, with as many parameters as they take: for the tests that ask how they are planned.
#[cfg(test)]
pub(crate) const STATEMENTS: [(&str, &str, usize); 6] = [
    ("find key", FIND, 1),
    ("renew key", RENEW, 3),
    ("complete key", COMPLETE, 4),
    ("release key", RELEASE, 2),
    ("completed key", COMPLETED, 2),
    ("sweep keys", SWEEP, 1),
];

/// No lease and no retention is longer: a hundred years, far from where PostgreSQL's time ends.
const LONGEST: i64 = 100 * 366 * 86_400_000;

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis())
        .unwrap_or(LONGEST)
        .min(LONGEST)
}

impl Statements {
    pub(super) fn of(schema: &str) -> Self {
        let keys = format!("{schema}.idempotency_keys");
        let named = |statement: &str| statement.replace("{keys}", &keys).into();
        Self {
            begin: named(BEGIN),
            find: named(FIND),
            renew: named(RENEW),
            complete: named(COMPLETE),
            release: named(RELEASE),
            completed: named(COMPLETED),
            sweep: named(SWEEP),
        }
    }

    /// Returns whether it was run before, if it is started now.
    pub(super) async fn begin(
        &self,
        connection: &mut PgConnection,
        begin: &Begin,
    ) -> Result<Option<bool>, Error> {
        query_scalar(AssertSqlSafe(Arc::clone(&self.begin)))
            .bind(&begin.id.as_bytes()[..])
            .bind(&begin.fence.as_bytes()[..])
            .bind(&begin.fingerprint.as_bytes()[..])
            .bind(millis(begin.term))
            .bind(millis(begin.retention))
            .bind(begin.on_expiry == OnExpiry::RunAgain)
            .fetch_optional(connection)
            .await
    }

    /// Reads a key's row; none where it is past its retention.
    pub(super) async fn find(
        &self,
        connection: &mut PgConnection,
        id: KeyId,
    ) -> Result<Option<Row>, Error> {
        let found = query(AssertSqlSafe(Arc::clone(&self.find))).bind(&id.as_bytes()[..]);
        found
            .fetch_optional(connection)
            .await?
            .as_ref()
            .map(row)
            .transpose()
    }

    pub(super) async fn renew(
        &self,
        connection: &mut PgConnection,
        lease: Lease,
        term: Duration,
    ) -> Result<Written, Error> {
        let renew = query(AssertSqlSafe(Arc::clone(&self.renew)))
            .bind(&lease.id.as_bytes()[..])
            .bind(&lease.fence.as_bytes()[..])
            .bind(millis(term));
        let changed = renew.execute(&mut *connection).await?.rows_affected();
        self.written(connection, lease, changed).await
    }

    pub(super) async fn complete(
        &self,
        connection: &mut PgConnection,
        lease: Lease,
        answer: &SealedAnswer,
        retention: Duration,
    ) -> Result<Written, Error> {
        let complete = query(AssertSqlSafe(Arc::clone(&self.complete)))
            .bind(&lease.id.as_bytes()[..])
            .bind(&lease.fence.as_bytes()[..])
            .bind(answer.as_bytes())
            .bind(millis(retention));
        let changed = complete.execute(&mut *connection).await?.rows_affected();
        self.written(connection, lease, changed).await
    }

    pub(super) async fn release(
        &self,
        connection: &mut PgConnection,
        lease: Lease,
    ) -> Result<Written, Error> {
        let release = query(AssertSqlSafe(Arc::clone(&self.release)))
            .bind(&lease.id.as_bytes()[..])
            .bind(&lease.fence.as_bytes()[..]);
        let changed = release.execute(&mut *connection).await?.rows_affected();
        self.written(connection, lease, changed).await
    }

    pub(super) async fn sweep(
        &self,
        connection: &mut PgConnection,
        limit: usize,
    ) -> Result<usize, Error> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let sweep = query(AssertSqlSafe(Arc::clone(&self.sweep))).bind(limit);
        let swept = sweep.execute(connection).await?.rows_affected();
        Ok(usize::try_from(swept).unwrap_or(usize::MAX))
    }

    /// Says what a conditional write came to, by whether it changed a row.
    async fn written(
        &self,
        connection: &mut PgConnection,
        lease: Lease,
        changed: u64,
    ) -> Result<Written, Error> {
        if changed > 0 {
            return Ok(Written::Done);
        }
        let its_own = query_scalar(AssertSqlSafe(Arc::clone(&self.completed)))
            .bind(&lease.id.as_bytes()[..])
            .bind(&lease.fence.as_bytes()[..]);
        Ok(match its_own.fetch_one(connection).await? {
            true => Written::Before,
            false => Written::Lost,
        })
    }
}

fn row(row: &PgRow) -> Result<Row, Error> {
    let left: i64 = row.try_get(2)?;
    let answer: Option<Vec<u8>> = row.try_get(3)?;
    Ok(Row {
        fence: Fence::from_bytes(bytes(row, 0)?),
        fingerprint: Fingerprint::from_bytes(bytes(row, 1)?),
        lease_left: Duration::from_millis(u64::try_from(left).unwrap_or(0)),
        answer: answer.map(SealedAnswer::from_bytes),
    })
}

fn bytes<const N: usize>(row: &PgRow, column: usize) -> Result<[u8; N], Error> {
    let bytes: &[u8] = row.try_get(column)?;
    bytes
        .try_into()
        .map_err(|wrong| Error::Decode(Box::new(wrong)))
}
