//! What is asked of the table, each on a connection that somebody else has begun a transaction on.

use std::time::Duration;

use bytes::Bytes;
use http::Response;
use mamparo::idempotency::{
    Begin, Begun, Fence, Fingerprint, IdempotencyTx, KeyId, Lease, Row, SealedAnswer, Step,
    StoreError, Written,
};
use mamparo_core::clock::{SystemClock, WallClock};
use rusqlite::{Connection, OptionalExtension, params};

use crate::TransactionError;
use crate::database::{Part, store_error};

/// A table with its own row numbers, and the keys' hashes in an index beside it: rows of any size then lie in the order in which they were
/// written, and a look into the index reads four pages of ten million keys.
pub(super) const PART: Part = Part {
    name: "mamparo_idempotency",
    steps: &["CREATE TABLE mamparo_idempotency (
        id BLOB NOT NULL,
        fence BLOB NOT NULL,
        fingerprint BLOB NOT NULL,
        lease_until INTEGER NOT NULL,
        expires_at INTEGER NOT NULL,
        answer BLOB
    ) STRICT;
    CREATE UNIQUE INDEX mamparo_idempotency_id ON mamparo_idempotency (id);
    CREATE INDEX mamparo_idempotency_expires_at ON mamparo_idempotency (expires_at);"],
};

/// Milliseconds since 1970, by the machine's clock: a key outlives the process.
pub(super) type Millis = i64;

pub(super) fn millis(clock: &dyn WallClock) -> Millis {
    let since = clock
        .now()
        .duration_since(std::time::SystemTime::UNIX_EPOCH);
    whole(since.unwrap_or_default())
}

fn whole(duration: Duration) -> Millis {
    Millis::try_from(duration.as_millis()).unwrap_or(Millis::MAX)
}

fn after(now: Millis, duration: Duration) -> Millis {
    now.saturating_add(whole(duration))
}

/// Reads a key's row; none where it is past its retention.
pub(super) fn find(
    connection: &Connection,
    id: KeyId,
    now: Millis,
) -> Result<Option<Row>, StoreError> {
    let mut asked = connection
        .prepare_cached(
            "SELECT fence, fingerprint, lease_until, answer FROM mamparo_idempotency
             WHERE id = ?1 AND expires_at > ?2",
        )
        .map_err(store_error)?;
    let found = asked.query_row(params![id.as_bytes(), now], |row| {
        let until: Millis = row.get(2)?;
        let left = u64::try_from(until.saturating_sub(now)).unwrap_or_default();
        let answer: Option<Vec<u8>> = row.get(3)?;
        Ok(Row {
            fence: Fence::from_bytes(row.get(0)?),
            fingerprint: Fingerprint::from_bytes(row.get(1)?),
            lease_left: Duration::from_millis(left),
            answer: answer.map(SealedAnswer::from_bytes),
        })
    });
    found.optional().map_err(store_error)
}

/// Starts a key, or says what is known of it.
pub(super) fn begin(
    connection: &Connection,
    begin: &Begin,
    now: Millis,
) -> Result<Begun, StoreError> {
    let again = match begin.over(find(connection, begin.id, now)?) {
        Step::Start { again } => again,
        Step::Held => return Ok(Begun::Run { again: false }),
        Step::Found(record) => return Ok(Begun::Found(record)),
        _ => return Err(unknown_step()),
    };
    let until = after(now, begin.term);
    let mut written = connection
        .prepare_cached(
            "INSERT INTO mamparo_idempotency (id, fence, fingerprint, lease_until, expires_at)
             VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (id) DO UPDATE SET fence = excluded.fence, fingerprint = excluded.fingerprint,
                 lease_until = excluded.lease_until, expires_at = excluded.expires_at, answer = NULL",
        )
        .map_err(store_error)?;
    let row = params![
        begin.id.as_bytes(),
        begin.fence.as_bytes(),
        begin.fingerprint.as_bytes(),
        until,
        after(until, begin.retention)
    ];
    written.execute(row).map_err(store_error)?;
    Ok(Begun::Run { again })
}

fn unknown_step() -> StoreError {
    let reason = "mamparo asks for a step that this version of mamparo-sqlite does not know";
    StoreError::new(mamparo::idempotency::StoreErrorKind::Incompatible, reason)
}

/// Sets the end of a lease.
pub(super) fn renew(
    connection: &Connection,
    lease: Lease,
    term: Duration,
    now: Millis,
) -> Result<Written, StoreError> {
    let changed = connection
        .prepare_cached(
            "UPDATE mamparo_idempotency SET lease_until = ?3, expires_at = expires_at - lease_until + ?3
             WHERE id = ?1 AND fence = ?2 AND answer IS NULL AND expires_at > ?4",
        )
        .and_then(|mut renew| {
            renew.execute(params![
                lease.id.as_bytes(),
                lease.fence.as_bytes(),
                after(now, term),
                now
            ])
        });
    written(connection, lease, now, changed.map_err(store_error)?)
}

/// Stores an answer.
pub(super) fn store(
    connection: &Connection,
    lease: Lease,
    answer: &SealedAnswer,
    retention: Duration,
    now: Millis,
) -> Result<Written, StoreError> {
    let changed = connection
        .prepare_cached(
            "UPDATE mamparo_idempotency SET answer = ?3, expires_at = ?4
             WHERE id = ?1 AND fence = ?2 AND answer IS NULL AND expires_at > ?5",
        )
        .and_then(|mut complete| {
            complete.execute(params![
                lease.id.as_bytes(),
                lease.fence.as_bytes(),
                answer.as_bytes(),
                after(now, retention),
                now
            ])
        });
    written(connection, lease, now, changed.map_err(store_error)?)
}

/// Forgets a key for which nothing was done.
pub(super) fn release(
    connection: &Connection,
    lease: Lease,
    now: Millis,
) -> Result<Written, StoreError> {
    let changed = connection
        .prepare_cached(
            "DELETE FROM mamparo_idempotency
             WHERE id = ?1 AND fence = ?2 AND answer IS NULL AND expires_at > ?3",
        )
        .and_then(|mut release| {
            release.execute(params![lease.id.as_bytes(), lease.fence.as_bytes(), now])
        });
    written(connection, lease, now, changed.map_err(store_error)?)
}

/// Says what a conditional write came to, by whether it changed a row.
fn written(
    connection: &Connection,
    lease: Lease,
    now: Millis,
    changed: usize,
) -> Result<Written, StoreError> {
    if changed > 0 {
        return Ok(Written::Done);
    }
    let mut asked = connection
        .prepare_cached(
            "SELECT 1 FROM mamparo_idempotency
             WHERE id = ?1 AND fence = ?2 AND answer IS NOT NULL AND expires_at > ?3",
        )
        .map_err(store_error)?;
    let its_own = asked.exists(params![lease.id.as_bytes(), lease.fence.as_bytes(), now]);
    Ok(match its_own.map_err(store_error)? {
        true => Written::Before,
        false => Written::Lost,
    })
}

/// Completes a key in a transaction of yours, with the answer that you are about to send.
///
/// Effect and key are then committed together, or neither is. The connection must be one to the store's file, in a transaction that
/// began `IMMEDIATE`: that of [`SqliteIdempotency::transaction`](crate::SqliteIdempotency::transaction), or one of your own
/// connections. Called twice for one key, the first answer stays, and the second call succeeds.
///
/// ```
/// use bytes::Bytes;
/// use http::Response;
/// use mamparo::idempotency::IdempotencyTx;
/// use mamparo_sqlite::rusqlite::{Connection, TransactionBehavior};
/// use mamparo_sqlite::{TransactionError, complete};
///
/// fn charge(own: &mut Connection, key: &IdempotencyTx) -> Result<Response<Bytes>, TransactionError> {
///     let tx = own.transaction_with_behavior(TransactionBehavior::Immediate)?;
///     tx.execute("INSERT INTO charges (cents) VALUES (100)", [])?;
///     let answer = Response::new(Bytes::from("charged"));
///     complete(&tx, key, &answer)?;
///     tx.commit()?;
///     Ok(answer)
/// }
/// ```
///
/// # Errors
///
/// Another run has taken the key over ([`TransactionError::is_lost`]), there is no transaction, or the file fails: roll back.
pub fn complete(
    transaction: &Connection,
    key: &IdempotencyTx,
    response: &Response<Bytes>,
) -> Result<(), TransactionError> {
    if transaction.is_autocommit() {
        return Err(TransactionError::NO_TRANSACTION);
    }
    let answer = key.answer(response);
    let now = millis(&SystemClock);
    let sealed = answer.seal();
    match store(transaction, key.lease(), &sealed, key.retention(), now)? {
        Written::Done => key.wrote(answer),
        Written::Before => {}
        _ => return Err(TransactionError::LOST),
    }
    Ok(())
}
