//! What the scripts answer, read.

use std::time::Duration;

use bytes::Bytes;
use mamparo::idempotency::{
    Begun, Fingerprint, Record, RecordState, SealedAnswer, StoreError, Written,
};
use redis::Value;

use crate::server::unreadable;

/// So long that nobody outlives it, and short enough for every sum in a script.
const CENTURY: u128 = 100 * 366 * 86_400_000;

/// Whole milliseconds, and no fewer.
pub(super) fn millis(time: Duration) -> u64 {
    let millis = time.as_nanos().div_ceil(1_000_000).min(CENTURY);
    u64::try_from(millis).unwrap_or(u64::MAX)
}

/// What became of a request to start a key.
pub(super) fn begun(value: Value) -> Result<Begun, StoreError> {
    match rows(value)?.as_mut_slice() {
        [Value::Int(0)] => Ok(Begun::Run { again: false }),
        [Value::Int(1)] => Ok(Begun::Run { again: true }),
        [Value::Int(2), row @ ..] => record(row).map(Begun::Found),
        _ => Err(unreadable()),
    }
}

/// What is known of a key.
pub(super) fn found(value: Value) -> Result<Option<Record>, StoreError> {
    match rows(value)?.as_mut_slice() {
        [Value::Int(3)] => Ok(None),
        [Value::Int(2), row @ ..] => record(row).map(Some),
        _ => Err(unreadable()),
    }
}

/// What became of a step that only the holder of a lease may do.
pub(super) fn written(value: &Value) -> Result<Written, StoreError> {
    match value {
        Value::Int(0) => Ok(Written::Done),
        Value::Int(1) => Ok(Written::Before),
        Value::Int(2) => Ok(Written::Lost),
        _ => Err(unreadable()),
    }
}

fn rows(value: Value) -> Result<Vec<Value>, StoreError> {
    match value {
        Value::Array(rows) => Ok(rows),
        _ => Err(unreadable()),
    }
}

fn record(row: &mut [Value]) -> Result<Record, StoreError> {
    let (print, state) = match row {
        [Value::BulkString(print), Value::Int(left), ..] => {
            let left = u64::try_from(*left).map_err(|_| unreadable())?;
            let lease_left = Duration::from_millis(left);
            (print, RecordState::Started { lease_left })
        }
        [Value::BulkString(print), _, Value::BulkString(answer)] => {
            let answer = SealedAnswer::from_bytes(Bytes::from(std::mem::take(answer)));
            (print, RecordState::Completed(answer))
        }
        _ => return Err(unreadable()),
    };
    let print = print.as_slice().try_into().map_err(|_| unreadable())?;
    Ok(Record::new(Fingerprint::from_bytes(print), state))
}
